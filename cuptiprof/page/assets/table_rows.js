"use strict";
// Which rows of a table are shown and in what order; knows nothing of the document.

(() => {
  const collator = new Intl.Collator("en", { numeric: true });

  // A number for each row that sorts as its value does; NaN where there is none.
  const sortable = (column) => {
    if (!(column instanceof cuptiprof.Texts)) return column;
    const order = column.texts.map((_, i) => i).sort((a, b) => collator.compare(column.texts[a], column.texts[b]));
    const rank = new Float64Array(column.texts.length);
    order.forEach((code, i) => { rank[code] = i; });
    return Float64Array.from(column.codes, (code) => (code < 0 ? NaN : rank[code]));
  };

  // What is missing comes last either way; rows that are alike keep their order.
  const sorted = (rows, column, descending) => {
    const by = sortable(column);
    const sign = descending ? -1 : 1;
    return rows.sort((a, b) => {
      const x = by[a], y = by[b];
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || a - b;
      return sign * (x - y) || a - b;
    });
  };

  // Per row, whether one of the text columns has the words.
  const found = (columns, length, search) => {
    const hits = new Uint8Array(length);
    const wanted = search.toLowerCase();
    for (const column of columns) {
      if (!(column instanceof cuptiprof.Texts)) continue;
      const has = column.texts.map((text) => text.toLowerCase().includes(wanted));
      for (let row = 0; row < length; row++) if (column.codes[row] >= 0 && has[column.codes[row]]) hits[row] = 1;
    }
    return hits;
  };

  const parents = (depths) => {
    const open = [], out = new Int32Array(depths.length).fill(-1);
    for (let row = 0; row < depths.length; row++) {
      open.length = Math.min(open.length, depths[row]);
      if (open.length) out[row] = open.at(-1);
      open.push(row);
    }
    return out;
  };

  // Rows below their parents, brothers in the order of `rows`; what is below a closed row is left out.
  const walked = (rows, parent, closed) => {
    const below = new Map();
    for (const row of rows) {
      if (!below.has(parent[row])) below.set(parent[row], []);
      below.get(parent[row]).push(row);
    }
    const out = [], left = [...(below.get(-1) ?? [])].reverse();
    while (left.length) {
      const row = left.pop();
      out.push(row);
      if (!closed.has(row)) left.push(...[...(below.get(row) ?? [])].reverse());
    }
    return out;
  };

  // [{above: text or null, rows}] of a table; `state` is {search, sort, descending, group, closed}.
  cuptiprof.tableRows = (table, state) => {
    const { columns, length, parent } = table;
    let rows = Array.from({ length }, (_, row) => row);
    if (state.search) {
      const hits = found(table.searched, length, state.search);
      if (parent) for (let row = length - 1; row >= 0; row--) if (hits[row] && parent[row] >= 0) hits[parent[row]] = 1;
      rows = rows.filter((row) => hits[row]);
    }
    const by = state.group ? columns[state.group] : null;
    const groups = new Map();
    for (const row of rows) {
      const code = by === null ? -1 : by instanceof cuptiprof.Texts ? by.codes[row] : by[row];
      if (!groups.has(code)) groups.set(code, []);
      groups.get(code).push(row);
    }
    return [...groups].map(([code, of]) => {
      const ordered = state.sort ? sorted(of, columns[state.sort], state.descending) : of;
      return {
        above: by === null ? null : by instanceof cuptiprof.Texts ? by.texts[code] ?? "-" : String(code),
        rows: parent ? walked(ordered, parent, state.closed) : ordered,
      };
    });
  };

  cuptiprof.parents = parents;
})();
