// What is said in words: the chosen slice, a chosen stretch, and, for those who do not see the picture, a table of what is in sight.
(() => {
  "use strict";
  const timeline = (cuptiprof.timeline ??= {});

  const MOST_ROWS = 200;
  const MOST_NAMES = 12;
  const MOST_WORKS = 20;
  const FIELDS = [
    ["region", "region"],
    ["operator", "operator"],
    ["module", "module"],
    ["line", "line"],
    ["nvtx", "NVTX"],
    ["domain", "domain"],
    ["grid", "grid"],
    ["block", "block"],
    ["registers", "registers per thread"],
    ["shared_memory", "shared memory per block"],
    ["shapes", "input shapes"],
    ["metadata", "metadata"],
    ["stack", "stack, innermost first"],
  ];

  timeline.node = (tag, className, ...children) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    element.append(...children);
    return element;
  };
  const node = timeline.node;

  const button = (text, run, title) => {
    const element = node("button", "tl-link", text);
    element.type = "button";
    if (title) element.title = title;
    element.addEventListener("click", run);
    return element;
  };

  // Name of a slice, and in how much time of which track: one line.
  timeline.lineOf = (slices, slice) => {
    const name = slices.faces.name[slices.face[slice]];
    const track = slices.track(slice);
    return `${name}, ${timeline.time(slices.end[slice] - slices.start[slice])}, ${track.name}, ${track.group}`;
  };

  timeline.Panel = class {
    // actions: {choose(slice), fit(), clear()}
    constructor(element, said, state, actions) {
      Object.assign(this, { element, said, state, actions });
      this.showNothing();
    }

    showNothing() {
      this.element.replaceChildren(node("p", "tl-hint", "Click a slice, or drag over a stretch of time, to see what it is."));
    }

    showSlice(slice) {
      const { slices, marks } = this.state;
      const face = slices.face[slice];
      const track = slices.track(slice);
      const facts = node("dl", "tl-facts");
      const fact = (what, ...values) => facts.append(node("dt", "", what), node("dd", "", ...values));
      fact("kind", slices.faces.kind[face]);
      fact("start", timeline.exactTime(slices.start[slice]));
      fact("duration", timeline.exactTime(slices.end[slice] - slices.start[slice]));
      fact("where", `${track.name}, ${track.group}`);
      this._ofCopy(fact, slice);
      this._arrows(fact, slice);
      for (const [column, what] of FIELDS) {
        const value = slices.faces[column]?.[face];
        if (value) fact(what, String(value));
      }
      fact("of this name", `${timeline.integer(marks.total)}, this is number ${timeline.integer(marks.rank(slice))}`);
      const zoom = button("Zoom to it (f)", () => this.actions.fit());
      this.element.replaceChildren(
        node("div", "tl-title", node("strong", "tl-name", slices.faces.name[face]), zoom, button("Close (Esc)", () => this.actions.clear())),
        facts,
      );
      this.said.textContent = timeline.lineOf(slices, slice);
    }

    _ofCopy(fact, slice) {
      const { slices } = this.state;
      const size = slices.size(slice);
      if (size === null) return;
      fact("size", `${timeline.bytes(size)} (${timeline.integer(size)} bytes)`);
      const duration = slices.end[slice] - slices.start[slice];
      if (duration > 0) fact("rate", `${(size / duration).toFixed(2)} GB/s`);
    }

    _arrows(fact, slice) {
      const { slices } = this.state;
      const to = (other, text) => button(text, () => this.actions.choose(other), "Show it");
      const name = (other) => slices.faces.name[slices.face[other]];
      const call = slices.cause[slice];
      if (call >= 0) {
        const waited = slices.start[slice] - slices.end[call];
        const when = waited >= 0 ? `ended ${timeline.exactTime(waited)} before` : "had not ended";
        fact("launched by", to(call, `${name(call)} (l)`), ` ${when}`);
      } else {
        const works = slices.causedBy(slice);
        const links = works.slice(0, MOST_WORKS).map((work) => to(work, name(work)));
        if (works.length) fact("launched", ...links, works.length > MOST_WORKS ? ` and ${timeline.integer(works.length - MOST_WORKS)} more` : "");
      }
      const { forward, backward } = slices.passOf(slice);
      if (forward.length) fact("forward", ...forward.map((other) => to(other, name(other))));
      if (backward.length) fact("backward", ...backward.slice(0, MOST_WORKS).map((other) => to(other, name(other))));
    }

    // A stretch of time: what ran in it, by name.
    showArea({ from, to }) {
      const { slices, rows } = this.state;
      const byName = new Map();
      let count = 0;
      for (const { lane } of rows.lanes) {
        const until = slices.laneFrom[lane + 1];
        for (let i = slices.endingAfter(from, slices.laneFrom[lane], until); i < until && slices.start[i] < to; i++) {
          const key = slices.faces.kind[slices.face[i]] + "\n" + slices.faces.name[slices.face[i]];
          const one = byName.get(key) ?? { face: slices.face[i], count: 0, time: 0 };
          one.count++;
          one.time += Math.min(slices.end[i], to) - Math.max(slices.start[i], from);
          byName.set(key, one);
          count++;
        }
      }
      const most = [...byName.values()].sort((a, b) => b.time - a.time);
      const rowsShown = most.slice(0, MOST_NAMES).map(({ face, count: times, time }) => [
        slices.faces.kind[face],
        slices.faces.name[face],
        timeline.integer(times),
        timeline.time(time),
      ]);
      const left = most.length - rowsShown.length;
      const title = `${timeline.exactTime(to - from)}: ${timeline.integer(count)} slices of ${timeline.integer(most.length)} names`;
      this.element.replaceChildren(
        node("div", "tl-title", node("strong", "tl-name", title), button("Zoom to it (f)", () => this.actions.fit()), button("Close (Esc)", () => this.actions.clear())),
        timeline.table(["kind", "name", "slices", "time within"], rowsShown, left ? `and ${timeline.integer(left)} more names` : ""),
      );
      this.said.textContent = title;
    }
  };

  timeline.table = (heads, rows, note) => {
    const head = node("thead", "", node("tr", "", ...heads.map((text) => Object.assign(node("th", "", text), { scope: "col" }))));
    const body = node("tbody", "", ...rows.map((cells) => node("tr", "", ...cells.map((cell) => node("td", "", cell)))));
    const table = node("table", "tl-rows", head, body);
    if (note) table.append(node("caption", "", note));
    return table;
  };

  // The longest slices in sight, in order of time.
  timeline.inSight = ({ slices, rows, view }) => {
    const all = [];
    let count = 0;
    for (const { lane } of rows.lanes) {
      const until = slices.laneFrom[lane + 1];
      const first = slices.endingAfter(view.start, slices.laneFrom[lane], until);
      const after = slices.startingAt(view.end, first, until);
      count += Math.max(0, after - first);
      if (after - first <= 4 * MOST_ROWS) for (let i = first; i < after; i++) all.push(i);
      else all.push(...longestOf(slices, first, after));
    }
    const duration = (slice) => slices.end[slice] - slices.start[slice];
    all.sort((a, b) => duration(b) - duration(a) || a - b);
    const shown = all.slice(0, MOST_ROWS).sort((a, b) => slices.start[a] - slices.start[b] || a - b);
    const rowsShown = shown.map((slice) => [
      slices.faces.name[slices.face[slice]],
      slices.faces.kind[slices.face[slice]],
      `${slices.track(slice).name}, ${slices.track(slice).group}`,
      timeline.integer(slices.start[slice]),
      timeline.integer(duration(slice)),
    ]);
    const note = `${timeline.integer(shown.length)}${shown.length < count ? " longest" : ""} of ${timeline.integer(count)} slices in sight, by start`;
    return timeline.table(["name", "kind", "where", "start (ns)", "duration (ns)"], rowsShown, note);
  };

  // At most MOST_ROWS of a stretch of a lane: the longest are among those as long as the shortest that is kept.
  function longestOf(slices, first, after) {
    const duration = Float64Array.from({ length: after - first }, (_, i) => slices.end[first + i] - slices.start[first + i]);
    const least = duration.slice().sort()[duration.length - MOST_ROWS];
    const out = [];
    for (let i = 0; i < duration.length && out.length < MOST_ROWS; i++) if (duration[i] > least) out.push(first + i);
    for (let i = 0; i < duration.length && out.length < MOST_ROWS; i++) if (duration[i] === least) out.push(first + i);
    return out;
  }
})();
