"use strict";
// Axes whose steps are factors, and elements of SVG.

(() => {
  const NS = "http://www.w3.org/2000/svg";

  cuptiprof.svg = (tag, attributes = {}, ...children) => {
    const element = document.createElementNS(NS, tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "text") element.textContent = value;
      else element.setAttribute(name, String(value));
    }
    element.append(...children);
    return element;
  };

  // at(value): where on a line from `from` to `to` a value between low and high lies, by its logarithm.
  cuptiprof.logScale = (low, high, from, to) => {
    const span = Math.log10(high) - Math.log10(low) || 1;
    const marks = [];
    for (let power = Math.ceil(Math.log10(low) - 1e-9); power <= Math.log10(high) + 1e-9; power++) marks.push(10 ** power);
    return { low, high, marks, at: (value) => from + ((Math.log10(value) - Math.log10(low)) / span) * (to - from) };
  };
})();
