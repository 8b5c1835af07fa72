// What is typed is checked when typing pauses; of several answers, the newest counts.
"use strict";
(() => {
  const field = (id) => document.getElementById(id);
  let seed = 0, newest = 0, waiting = 0;

  async function ask(path, request) {
    const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(request) });
    return answer.json();
  }

  function line(kind, text, name) {
    const made = document.createElement(kind);
    made.textContent = text;
    if (name) made.className = name;
    return made;
  }

  function findings(place, found, good) {
    place.replaceChildren();
    if (!found.length) return place.append(line("p", good, "good"));
    const list = line("ul", "", "problems");
    for (const each of found) {
      const item = line("li", "");
      const [first, ...rest] = each.message.split("\n");
      item.append(line("strong", each.severity + " ", each.severity === "error" ? "bad" : ""), (each.place ? each.place + ": " : "") + first);
      if (rest.length) item.append(line("pre", rest.join("\n")));
      const at = /^(\d+):(\d+)$/.exec(each.place);
      if (at) {
        const go = line("button", "Show", "act");
        go.type = "button";
        go.addEventListener("click", () => jump(place.id === "verdict" ? field("instance") : field("source"), +at[1], +at[2]));
        item.append(" ", go);
      }
      list.append(item);
    }
    place.append(list);
  }

  function jump(area, row, column) {
    const lines = area.value.split("\n").slice(0, row - 1);
    // Columns are code points, places of an editor are UTF-16 units.
    const here = [...(area.value.split("\n")[row - 1] || "")].slice(0, column - 1).join("").length;
    const at = lines.reduce((sum, text) => sum + text.length + 1, 0) + here;
    area.focus();
    area.setSelectionRange(at, at);
    soon();
  }

  function cursor(place, at) {
    place.replaceChildren();
    if (!at) return place.append(line("p", "The source does not compile.", "quiet"));
    if (!at.reached) {
      return place.append(line("p", "No output begins like this: behind " + JSON.stringify(at.fits) + ", " + at.expected + ".", "bad"));
    }
    const shown = [
      ["Complete", at.complete ? "yes, it may end here" : "no"], ["Forced", at.forced ? JSON.stringify(at.forced) : "nothing, there is a choice"],
      ["Shortest completion", JSON.stringify(at.shortest_completion)], ["Waiting for", at.expected],
      ["Allowed " + at.kind, at.allowed.toLocaleString("en") + " of " + at.of.toLocaleString("en")],
    ];
    const list = line("dl", "", "facts");
    for (const [name, value] of shown) {
      const pair = line("div", "");
      pair.append(line("dt", name), line("dd", value));
      list.append(pair);
    }
    place.append(list, line("p", at.tokens.map((token) => JSON.stringify(token)).join("  ") + (at.allowed > at.tokens.length ? "  …" : ""), "mono"));
  }

  async function check() {
    const mine = ++newest, area = field("instance");
    let answer;
    try {
      answer = await ask("/check", {
        language: field("language").value, source: field("source").value, instance: area.value,
        prefix: area.value.slice(0, area.selectionStart), seed: seed,
      });
    } catch (error) {
      answer = { error: "the server does not answer" };
    }
    if (mine !== newest) return;
    if (answer.error) return findings(field("problems"), [{ severity: "error", place: "", message: answer.error }], "");
    findings(field("problems"), answer.problems, "None.");
    const samples = field("samples");
    samples.replaceChildren();
    for (const sample of answer.samples) samples.append(line("pre", sample));
    const verdict = field("verdict");
    if (answer.instance) findings(verdict, answer.instance, "It is in the language.");
    else verdict.replaceChildren(line("p", "Nothing to check.", "quiet"));
    cursor(field("cursor"), answer.cursor);
  }

  function soon() {
    clearTimeout(waiting);
    waiting = setTimeout(check, 200);
  }

  for (const id of ["source", "instance", "language"]) field(id).addEventListener("input", soon);
  field("instance").addEventListener("keyup", soon);
  field("instance").addEventListener("click", soon);
  field("again").addEventListener("click", () => { seed += 1; check(); });

  const write = field("write");
  if (write) write.addEventListener("click", async () => {
    const written = field("written");
    write.disabled = true;
    written.textContent = "Writing …";
    try {
      const found = await ask("/generate", { language: field("language").value, source: field("source").value, prompt: field("prompt").value });
      written.textContent = found.error || found.text + "\n\n" + found.tokens + " tokens, " + found.forced + " of them forced, in " + found.passes
        + " forward passes; masks removed " + (100 * found.removed).toFixed(1) + " %";
    } catch (error) {
      written.textContent = "The server does not answer.";
    }
    write.disabled = false;
  });

  const area = field("instance");
  area.setSelectionRange(area.value.length, area.value.length);
  check();
})();
