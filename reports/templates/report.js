"use strict";
// A cursor with the time under the pointer. Everything else works without script.
for (const svg of document.querySelectorAll("svg.tl")) {
  const ns = "http://www.w3.org/2000/svg", data = svg.dataset;
  const left = +data.left, right = +data.right, end = +data.end, zero = +data.zero;
  const group = document.createElementNS(ns, "g"), line = document.createElementNS(ns, "path");
  const text = document.createElementNS(ns, "text");
  group.setAttribute("class", "cursor");
  group.append(line, text);
  group.style.display = "none";
  svg.append(group);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width;
    const inside = x >= left && x <= right;
    group.style.display = inside ? "" : "none";
    if (!inside) return;
    const s = ((x - left) / (right - left) * end - zero) / 1e9;
    line.setAttribute("d", `M${x} 32V${svg.viewBox.baseVal.height - 4}`);
    text.setAttribute("x", Math.min(Math.max(x, left + 24), right - 24));
    text.setAttribute("y", svg.viewBox.baseVal.height - 1);
    text.textContent = (s < 0 ? "−" : "+") + Math.abs(s).toFixed(1) + " s";
  });
  svg.addEventListener("pointerleave", () => { group.style.display = "none"; });
}
