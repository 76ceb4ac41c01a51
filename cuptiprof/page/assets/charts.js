"use strict";
// A section of charts, one below the other.

cuptiprof.mount("charts", (element, { facts, columns }, page) => {
  const drawn = facts.charts.map((chart) => new cuptiprof.Chart(element, chart, columns, page));
  // What tests read: the numbers that are drawn.
  element.charts = drawn;
});
