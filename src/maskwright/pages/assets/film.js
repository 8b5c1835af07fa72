// One step at a time: a slider, arrow keys, and a button that plays.
"use strict";
(() => {
  const frames = JSON.parse(document.getElementById("data").textContent).frames;
  const step = document.getElementById("step"), play = document.getElementById("play"), stage = document.getElementById("slots");
  const slots = frames[0].slots.map(() => stage.appendChild(document.createElement("span")));
  let shown = -1, playing = 0;

  function apply(frame) {
    for (const [k, text, leftOut] of frame.slots) {
      slots[k].textContent = text === null ? "·" : leftOut ? "" : text.replace(/\n/g, "⏎\n");
      slots[k].className = "slot" + (text === null ? " open" : "");
    }
  }

  function show(at) {
    // Frames say what changed: going back begins anew.
    if (at < shown) shown = -1;
    while (shown < at) apply(frames[++shown]);
    const frame = frames[at], opened = slots.filter((slot) => slot.classList.contains("open")).length;
    slots.forEach((slot, k) => slot.classList.toggle("new", frame.taken.includes(k)));
    const figures = { taken: frame.taken.length, open: opened, proposed: frame.proposed, refused: frame.refused };
    for (const [name, value] of Object.entries(figures)) document.querySelector("[data-figure=" + name + "]").textContent = value.toLocaleString("en");
    document.getElementById("number").textContent = at + " of " + (frames.length - 1);
    stage.setAttribute("aria-label", "canvas behind step " + at + ": " + stage.textContent);
    step.value = at;
  }

  function stop() {
    clearInterval(playing);
    playing = 0;
    play.textContent = "Play";
  }

  function go(to) {
    stop();
    show(Math.min(Math.max(to, 0), frames.length - 1));
  }

  step.max = frames.length - 1;
  step.addEventListener("input", () => go(+step.value));
  play.addEventListener("click", () => {
    if (playing) return stop();
    if (shown === frames.length - 1) show(0);
    play.textContent = "Stop";
    playing = setInterval(() => (shown < frames.length - 1 ? show(shown + 1) : stop()), Math.max(60, Math.min(600, 12000 / frames.length)));
  });
  document.addEventListener("keydown", (event) => {
    const to = { ArrowRight: shown + 1, ArrowLeft: shown - 1, Home: 0, End: frames.length - 1 }[event.key];
    if (event.key === " " && event.target === document.body) {
      event.preventDefault();
      play.click();
    } else if (to !== undefined && !event.ctrlKey && !event.altKey && !event.metaKey && !event.target.closest(".scrolls")) {
      event.preventDefault();
      go(to);
    }
  });
  show(0);
})();
