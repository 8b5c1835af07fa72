-- Queries and changes as an application over a shop and its logs writes them; one text each, blank lines between.

SELECT c.customer_id, c.email, COUNT(o.order_id) AS orders, SUM(o.total_cents) / 100.0 AS spent
FROM customers AS c
LEFT JOIN orders AS o ON o.customer_id = c.customer_id AND o.status <> 'cancelled'
WHERE c.created_at >= '2025-01-01' AND c.country IN ('DE', 'FR', 'NL')
GROUP BY c.customer_id, c.email
HAVING COUNT(o.order_id) > 2
ORDER BY spent DESC
LIMIT 50;

WITH monthly AS (
    SELECT strftime('%Y-%m', ordered_at) AS month, product_id, SUM(quantity) AS sold
    FROM order_lines
    JOIN orders USING (order_id)
    GROUP BY month, product_id
), ranked AS (
    SELECT month, product_id, sold,
           ROW_NUMBER() OVER (PARTITION BY month ORDER BY sold DESC) AS place
    FROM monthly
)
SELECT r.month, p.name, r.sold
FROM ranked r
JOIN products p ON p.product_id = r.product_id
WHERE r.place <= 10
ORDER BY r.month, r.place;

INSERT INTO orders (customer_id, ordered_at, status, total_cents)
VALUES (4711, CURRENT_TIMESTAMP, 'open', 12990), (4712, CURRENT_TIMESTAMP, 'open', 3495)
RETURNING order_id;

UPDATE products
SET price_cents = CAST(price_cents * 1.05 AS INTEGER), updated_at = CURRENT_TIMESTAMP
WHERE category = 'kitchen' AND discontinued = 0 AND price_cents < 50000;

DELETE FROM sessions WHERE last_seen < date('now', '-30 days') AND user_id NOT IN (SELECT user_id FROM staff);

SELECT p.product_id, p.name, p.stock, COALESCE(s.sold, 0) AS sold_this_week,
       CASE WHEN p.stock = 0 THEN 'sold out' WHEN p.stock < 10 THEN 'low' ELSE 'fine' END AS state
FROM products p
LEFT JOIN (
    SELECT product_id, SUM(quantity) AS sold
    FROM order_lines
    WHERE added_at BETWEEN '2026-03-02' AND '2026-03-08'
    GROUP BY product_id
) s ON s.product_id = p.product_id
WHERE p.discontinued = 0
ORDER BY state, sold_this_week DESC;

SELECT DISTINCT u.name FROM users u WHERE EXISTS (
    SELECT 1 FROM reviews r WHERE r.user_id = u.user_id AND r.stars = 5 AND length(r.body) > 200
);

SELECT device_id, recorded_at, temperature,
       AVG(temperature) OVER (PARTITION BY device_id ORDER BY recorded_at ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS smooth,
       temperature - LAG(temperature) OVER (PARTITION BY device_id ORDER BY recorded_at) AS change
FROM readings
WHERE recorded_at >= '2026-02-01T00:00:00' AND recorded_at < '2026-02-02T00:00:00'
ORDER BY device_id, recorded_at;

WITH RECURSIVE managed(employee_id, name, level) AS (
    SELECT employee_id, name, 0 FROM employees WHERE manager_id IS NULL
    UNION ALL
    SELECT e.employee_id, e.name, m.level + 1
    FROM employees e JOIN managed m ON e.manager_id = m.employee_id
)
SELECT level, COUNT(*) AS people, group_concat(name, ', ') AS names
FROM managed
GROUP BY level
ORDER BY level;

INSERT INTO page_views (path, day, views) VALUES ('/index.html', '2026-03-01', 1)
ON CONFLICT (path, day) DO UPDATE SET views = views + excluded.views;

SELECT status, COUNT(*) FILTER (WHERE priority = 'high') AS high, COUNT(*) AS everything
FROM tickets
WHERE opened_at > '2026-01-01' AND (assignee IS NULL OR assignee LIKE 'support-%')
GROUP BY status;

SELECT a.account_id, a.owner, SUM(t.amount) AS balance
FROM accounts a
INNER JOIN transfers t ON t.account_id = a.account_id
WHERE t.booked_on <= '2026-02-28' AND t.state = 'booked'
GROUP BY a.account_id, a.owner
HAVING SUM(t.amount) < 0
ORDER BY balance ASC;

SELECT title, author, published FROM books WHERE title LIKE '%night%' ESCAPE '\' AND published BETWEEN 1950 AND 1999
UNION
SELECT title, director, released FROM films WHERE title LIKE '%night%' AND released >= 1950
ORDER BY 3 DESC LIMIT 20 OFFSET 40;

UPDATE invoices SET status = 'overdue', reminders = reminders + 1
WHERE status = 'sent' AND due_on < CURRENT_DATE
RETURNING invoice_id, customer_id, due_on;

SELECT g.name AS game, s.player, MAX(s.score) AS best, COUNT(*) AS played,
       RANK() OVER (PARTITION BY g.game_id ORDER BY MAX(s.score) DESC) AS place
FROM scores s JOIN games g ON g.game_id = s.game_id
GROUP BY g.game_id, g.name, s.player
ORDER BY g.name, place
LIMIT 100;

INSERT INTO archive (event_id, kind, payload, archived_at)
SELECT event_id, kind, payload, CURRENT_TIMESTAMP
FROM events
WHERE occurred_at < '2025-01-01' AND kind NOT IN ('login', 'logout');

DELETE FROM cart_items
WHERE cart_id IN (SELECT cart_id FROM carts WHERE abandoned = 1 AND updated_at < '2026-02-01');

SELECT json_extract(payload, '$.browser.name') AS browser, COUNT(*) AS hits,
       ROUND(100.0 * COUNT(*) / (SELECT COUNT(*) FROM events WHERE kind = 'view'), 2) AS percent
FROM events
WHERE kind = 'view' AND payload -> '$.bot' IS NULL
GROUP BY browser
ORDER BY hits DESC;

WITH first_orders AS (
    SELECT customer_id, MIN(ordered_at) AS first_at FROM orders GROUP BY customer_id
)
SELECT strftime('%Y-%m', f.first_at) AS cohort,
       COUNT(DISTINCT f.customer_id) AS customers,
       COUNT(DISTINCT CASE WHEN o.ordered_at > date(f.first_at, '+90 days') THEN o.customer_id END) AS came_back
FROM first_orders f
LEFT JOIN orders o ON o.customer_id = f.customer_id
GROUP BY cohort
ORDER BY cohort;

SELECT w.warehouse_id, w.city, p.sku, i.quantity - i.reserved AS available
FROM inventory i
JOIN warehouses w ON w.warehouse_id = i.warehouse_id
JOIN products p ON p.product_id = i.product_id
WHERE i.quantity - i.reserved > 0 AND p.sku IN ('A-1001', 'A-1002', 'B-2040', 'C-0007')
ORDER BY p.sku, available DESC;

REPLACE INTO settings (user_id, name, value) VALUES (17, 'theme', 'dark'), (17, 'language', 'en');

SELECT flight_no, origin, destination, departs_at,
       (julianday(arrives_at) - julianday(departs_at)) * 24 * 60 AS minutes
FROM flights
WHERE origin = 'HAM' AND departs_at >= '2026-04-01' AND NOT cancelled
ORDER BY departs_at
LIMIT 25;

SELECT t.name AS tag, COUNT(*) AS posts
FROM tags t
JOIN post_tags pt ON pt.tag_id = t.tag_id
JOIN posts p ON p.post_id = pt.post_id
WHERE p.published_at IS NOT NULL AND p.deleted_at IS NULL
GROUP BY t.tag_id
HAVING posts >= 5
ORDER BY posts DESC, t.name COLLATE NOCASE;

UPDATE employees AS e
SET salary = salary * (SELECT factor FROM raises r WHERE r.grade = e.grade)
WHERE e.grade IN (SELECT grade FROM raises) AND e.left_on IS NULL;

SELECT s.station_id, s.name, avg(m.level) AS mean_level, max(m.level) AS peak, min(m.level) AS lowest
FROM stations s, measurements m
WHERE m.station_id = s.station_id AND m.measured_at >= ?1 AND m.measured_at < ?2
GROUP BY s.station_id, s.name
HAVING max(m.level) > 4.5 OR min(m.level) < 0.3
ORDER BY peak DESC;

SELECT patient_id, visit_date, diagnosis,
       first_value(diagnosis) OVER history AS first_diagnosis,
       count(*) OVER history AS visits_so_far
FROM visits
WINDOW history AS (PARTITION BY patient_id ORDER BY visit_date)
ORDER BY patient_id, visit_date;

WITH lengths AS (SELECT film_id, minutes FROM films WHERE minutes IS NOT NULL)
SELECT f.film_id, f.minutes, (SELECT COUNT(*) FROM lengths l WHERE l.minutes < f.minutes) AS shorter
FROM lengths f
WHERE f.minutes > (SELECT avg(minutes) FROM lengths)
ORDER BY f.minutes DESC
LIMIT 10;

INSERT OR IGNORE INTO subscribers (email, name, joined_on)
VALUES ('ada@example.org', 'Ada', '2026-01-15'), ('grace@example.org', 'Grace', '2026-01-16'),
       ('alan@example.org', 'Alan', '2026-01-17');

SELECT product_id FROM products WHERE category = 'garden'
EXCEPT
SELECT product_id FROM order_lines
INTERSECT
SELECT product_id FROM inventory WHERE quantity > 0;

SELECT log_id, level, message, logged_at
FROM logs
WHERE level IN ('error', 'fatal') AND message NOT LIKE '%timeout%' AND logged_at > datetime('now', '-1 hour')
ORDER BY logged_at DESC, log_id DESC
LIMIT 200;

SELECT r.region, r.quarter, r.revenue, r.revenue - p.revenue AS growth,
       CASE WHEN p.revenue = 0 THEN NULL ELSE round((r.revenue - p.revenue) * 100.0 / p.revenue, 1) END AS percent
FROM revenue r
LEFT JOIN revenue p ON p.region = r.region AND p.quarter = r.quarter - 1
WHERE r.year = 2025
ORDER BY r.region, r.quarter;

DELETE FROM tokens WHERE expires_at <= CURRENT_TIMESTAMP OR revoked = 1 RETURNING token_id;

SELECT m.message_id, m.body, u.name AS sender, (SELECT COUNT(*) FROM likes l WHERE l.message_id = m.message_id) AS likes
FROM messages m
JOIN users u ON u.user_id = m.sender_id
WHERE m.channel_id = :channel AND (m.edited_at IS NULL OR m.edited_at > :since) AND m.body IS NOT ''
ORDER BY m.sent_at DESC
LIMIT :count;

SELECT upper(substr(last_name, 1, 1)) AS initial, COUNT(*) AS people, max(length(last_name)) AS longest
FROM people
WHERE last_name GLOB '[A-Z]*' AND born_on > '1980-01-01'
GROUP BY initial
ORDER BY initial;

UPDATE OR REPLACE positions
SET latitude = 53.5511, longitude = 9.9937, seen_at = CURRENT_TIMESTAMP
WHERE ship_id = 9321483 AND (latitude, longitude) IS NOT (53.5511, 9.9937);

SELECT x.category, x.name, x.price_cents
FROM (
    SELECT category, name, price_cents,
           dense_rank() OVER (PARTITION BY category ORDER BY price_cents DESC) AS r
    FROM products
) AS x
WHERE x.r <= 3
ORDER BY x.category, x.price_cents DESC;
