// One token at a time: arrow keys, Home and End move along the output; the panel below follows.
"use strict";
(() => {
  const places = JSON.parse(document.getElementById("data").textContent);
  const buttons = [...document.querySelectorAll(".token")];
  const panel = document.getElementById("panel");
  const percent = (share) => (share > 0 && share < 0.0005 ? "< 0.1 %" : (100 * share).toFixed(1) + " %");

  function cell(row, kind, text, number) {
    const made = row.appendChild(document.createElement(kind));
    made.textContent = text;
    if (number) made.className = "number";
    if (kind === "th") made.scope = "row";
  }

  function show(at) {
    const place = places[at];
    buttons.forEach((button, i) => {
      button.setAttribute("aria-pressed", i === at);
      button.tabIndex = i === at ? 0 : -1;
    });
    panel.querySelector("h2").textContent = "Place " + (at + 1) + " of " + places.length + ": " + JSON.stringify(place.text);
    const figures = {
      allowed: place.allowed.toLocaleString("en"), removed: percent(place.removed), before: place.entropy_before.toFixed(2) + " bits",
      after: place.entropy_after.toFixed(2) + " bits", chance: percent(place.probability), rank: place.rank.toLocaleString("en"),
      open: place.open.length ? place.open.join(" in ") : "the whole output", expected: place.expected,
      forced: place.forced ? "yes, the grammar left no choice" : "no",
    };
    for (const [name, value] of Object.entries(figures)) panel.querySelector("[data-figure=" + name + "]").textContent = value;
    const body = panel.querySelector("tbody");
    body.replaceChildren();
    for (const wanted of place.wanted) {
      const row = body.appendChild(document.createElement("tr"));
      cell(row, "th", JSON.stringify(wanted.text));
      cell(row, "td", percent(wanted.before), true);
      cell(row, "td", wanted.after > 0 ? percent(wanted.after) : "not allowed", true);
    }
  }

  document.querySelector(".tokens").addEventListener("keydown", (event) => {
    const at = buttons.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const next = Math.min(Math.max(to, 0), buttons.length - 1);
    show(next);
    buttons[next].focus();
  });
  buttons.forEach((button, i) => button.addEventListener("click", () => show(i)));
  // The place where the mask did most.
  show(places.reduce((best, place, i) => (place.removed > places[best].removed ? i : best), 0));
})();
