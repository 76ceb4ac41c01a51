"use strict";
// Where the boxes of a flame graph are: rows of a table in which what lies in one follows it, one level deeper.

(() => {
  // {parent, start, total, depth, levels, whole}: start in ns from the left end of the graph; parent -1 for outermost ones.
  cuptiprof.flameLayout = (depth, total) => {
    const rows = depth.length;
    const parent = cuptiprof.parents(depth);
    const start = new Float64Array(rows);
    const filled = new Float64Array(rows); // up to where what lies in a row goes
    let whole = 0, levels = 0;
    for (let row = 0; row < rows; row++) {
      const outer = parent[row];
      start[row] = outer < 0 ? whole : filled[outer];
      filled[row] = start[row];
      if (outer < 0) whole += total[row];
      else filled[outer] += total[row];
      levels = Math.max(levels, depth[row] + 1);
    }
    return { parent, start, total, depth, levels, whole };
  };

  // Rows that match, without those that lie in another one that matches: their times add up.
  cuptiprof.outermost = (rows, parent) => {
    const inside = new Uint8Array(parent.length); // a match is around it, or it is one
    const matches = new Uint8Array(parent.length);
    for (const row of rows) matches[row] = 1;
    return Array.from(matches.keys()).filter((row) => {
      const isInside = parent[row] >= 0 && inside[parent[row]];
      inside[row] = isInside || matches[row];
      return matches[row] && !isInside;
    });
  };
})();
