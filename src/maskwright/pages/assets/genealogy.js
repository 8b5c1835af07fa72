// A particle and a step, by sliders or a click into the picture; its line of ancestors is drawn.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const particle = document.getElementById("particle"), step = document.getElementById("step");
  const picture = document.querySelector("svg.genealogy"), frame = data.frame;
  const count = data.weights.length, steps = Math.max(1, data.ancestors.length);
  const x = (at) => frame.left + ((frame.right - frame.left) * at) / steps;
  const y = (i) => frame.top + ((frame.bottom - frame.top) * (i + 0.5)) / Math.max(1, count);
  const drawn = (name) => picture.appendChild(document.createElementNS(picture.namespaceURI, name));
  const line = drawn("polyline"), mark = drawn("circle");
  line.setAttribute("class", "chosen");
  mark.setAttribute("class", "mark");
  mark.setAttribute("r", 5);

  // Behind each step, from the first on, which particle it was.
  function ancestors(i) {
    const found = [i];
    for (let at = data.ancestors.length - 1; at >= 0; at--) found.unshift(data.ancestors[at][found[0]]);
    return found;
  }

  function show() {
    if (!count) return;
    const i = +particle.value, at = +step.value, before = ancestors(i);
    line.setAttribute("points", before.map((each, k) => x(k) + "," + y(each)).join(" "));
    mark.setAttribute("cx", x(at));
    mark.setAttribute("cy", y(before[at]));
    document.getElementById("which").textContent = i + " (0 to " + (count - 1) + ")";
    document.getElementById("when").textContent = at + " of " + data.ancestors.length;
    const changed = at > 0 && data.ancestors[at - 1].some((each, k) => each !== k);
    const figures = {
      weight: data.weights[i].toPrecision(3), ended: data.ended[i] ? "yes" : "no, it died", ancestor: before[at],
      size: at > 0 && at <= data.sizes.length ? data.sizes[at - 1].toFixed(2) : "not known",
      resampled: at === 0 ? "not yet there" : changed ? "resampled" : "left as they were",
      alive: (at > 0 ? data.alive[at - 1] : new Set(data.weights.map((_, k) => ancestors(k)[0])).size) + " of " + count,
    };
    for (const [name, value] of Object.entries(figures)) document.querySelector("[data-figure=" + name + "]").textContent = value;
    document.getElementById("text").textContent = data.texts[i];
  }

  picture.addEventListener("click", (event) => {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
    particle.value = Math.round(((place.y - frame.top) / (frame.bottom - frame.top)) * count - 0.5);
    step.value = Math.round(((place.x - frame.left) / (frame.right - frame.left)) * steps);
    show();
  });
  particle.max = Math.max(0, count - 1);
  step.max = data.ancestors.length;
  particle.value = data.weights.indexOf(Math.max(...data.weights));
  step.value = data.ancestors.length;
  particle.addEventListener("input", show);
  step.addEventListener("input", show);
  show();
})();
