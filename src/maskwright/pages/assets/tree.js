// All branches at once; and a link leads into branches that are closed.
"use strict";
(() => {
  const branches = [...document.querySelectorAll(".tree details")];
  document.getElementById("open").addEventListener("click", () => branches.forEach((each) => (each.open = true)));
  document.getElementById("close").addEventListener("click", () => branches.forEach((each) => (each.open = false)));
  document.querySelector(".tree").addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link) return;
    event.preventDefault();
    const target = document.querySelector(link.getAttribute("href"));
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    target.querySelector("details").open = true;
    target.scrollIntoView({ block: "center" });
    target.querySelector("summary").focus();
  });
})();
