"use strict";
// The columns that a chart draws, out of the table that it belongs to.

(() => {
  const rowsWhere = (chart, columns, length) => {
    const rows = [];
    const wanted = Object.entries(chart.where);
    for (let row = 0; row < length; row++) {
      if (wanted.every(([key, value]) => columns[`${chart.table}:${key}`][row] === value)) rows.push(row);
    }
    return rows;
  };

  // {rows, x, labels, ys}: rows of the table; where x is texts they stand at 0, 1, ... and are the labels. A value that is missing is null.
  cuptiprof.chartData = (chart, columns) => {
    const across = columns[`${chart.table}:${chart.x}`];
    const rows = rowsWhere(chart, columns, across.length);
    const isText = across instanceof cuptiprof.Texts;
    const ys = chart.series.map(({ key }) => {
      const column = columns[`${chart.table}:${key}`];
      return rows.map((row) => (Number.isNaN(column[row]) ? null : column[row]));
    });
    return {
      rows,
      x: rows.map((row, place) => (isText ? place : across[row])),
      labels: isText ? rows.map((row) => across.at(row)) : null,
      ys,
    };
  };

  const STEPS = [1, 2, 5];

  // Distances between the marks of an axis for uPlot: whole ones where values count, powers of 1024 in between for bytes.
  cuptiprof.axisSteps = (kind) => {
    const steps = [];
    if (kind === "bytes") {
      for (let power = 0; power < 50; power++) steps.push(2 ** power);
    } else {
      for (let power = kind === "metric" || kind === "percent" ? -9 : 0; power < 18; power++) {
        for (const step of STEPS) steps.push(Number(`${step}e${power}`));
      }
    }
    return steps;
  };

  // A value on an axis or under the pointer.
  cuptiprof.chartText = (kind, value) => {
    if (value === null || value === undefined) return "-";
    if (kind === "percent") return `${Number(value.toPrecision(5))}%`;
    if (kind === "metric" || kind === "count") return Number(value.toPrecision(6)).toLocaleString("en-US", { maximumFractionDigits: 6 });
    const text = cuptiprof.format(kind, value);
    return text.replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");
  };
})();
