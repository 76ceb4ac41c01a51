// The elements of the timeline, and the names of its rows.
(() => {
  "use strict";
  const timeline = (cuptiprof.timeline ??= {});

  const button = (text, label) => {
    const element = timeline.node("button", "tl-button", text);
    element.type = "button";
    element.title = label;
    element.setAttribute("aria-label", label);
    return element;
  };

  timeline.frame = (element) => {
    const { node } = timeline;
    const search = Object.assign(node("input", "tl-search"), { type: "search", placeholder: "Search by name ( / )", spellcheck: false });
    search.setAttribute("aria-label", "Search the timeline by name");
    const found = node("output", "tl-found");
    const parts = {
      search,
      found,
      previous: button("‹", "Previous of those found (Shift + N)"),
      next: button("›", "Next of those found (N)"),
      nearer: button("+", "Zoom in (W)"),
      farther: button("−", "Zoom out (S)"),
      whole: button("Whole run", "Show the whole run (0)"),
      image: button("Save image", "Save what is in sight as a PNG file"),
      map: node("canvas", "tl-map"),
      ruler: node("canvas", "tl-ruler"),
      labels: node("div", "tl-labels"),
      lanes: node("canvas", "tl-lanes"),
      top: node("canvas", "tl-top"),
      tip: node("div", "tl-tip"),
      panel: node("div", "tl-panel"),
      said: node("div", "tl-said"),
      inSight: node("details", "tl-sight", node("summary", "", "What is in sight, as a table")),
    };
    parts.window = node("div", "tl-window", parts.lanes, parts.top);
    parts.stage = node("div", "tl-stage", parts.window);
    parts.scroll = node("div", "tl-scroll", parts.labels, parts.stage);
    parts.corner = node("div", "tl-corner");
    parts.root = node(
      "div",
      "tl",
      node("div", "tl-bar", search, parts.previous, parts.next, found, node("span", "tl-room"), parts.farther, parts.nearer, parts.whole, parts.image, help()),
      parts.map,
      node("div", "tl-head", parts.corner, parts.ruler),
      parts.scroll,
      parts.tip,
      parts.panel,
      parts.inSight,
      parts.said,
    );
    parts.top.tabIndex = 0;
    parts.top.setAttribute("role", "application");
    parts.top.setAttribute("aria-roledescription", "timeline");
    parts.top.setAttribute("aria-label", "Timeline: arrow keys go from slice to slice, W and S zoom, A and D move; a table of what is in sight follows");
    parts.map.setAttribute("role", "img");
    parts.map.setAttribute("aria-label", "The whole run, with a window over what is in sight");
    parts.ruler.setAttribute("aria-hidden", "true");
    parts.lanes.setAttribute("aria-hidden", "true");
    parts.scroll.tabIndex = -1;
    parts.said.setAttribute("role", "status");
    parts.tip.hidden = true;
    element.append(parts.root);
    return parts;
  };

  function help() {
    const { node } = timeline;
    const rows = timeline.HELP.flatMap(([keys, what]) => [node("dt", "", keys), node("dd", "", what)]);
    return node("details", "tl-help", node("summary", "tl-button", "Keys"), node("dl", "tl-keys", ...rows));
  }

  // Names of groups and tracks, beside their rows; what has several rows can be folded.
  timeline.fillLabels = (labels, rows) => {
    const { node } = timeline;
    const kept = document.activeElement?.dataset?.row;
    const out = [];
    let number = 0;
    const place = (element, height, one) => {
      element.style.height = `${height}px`;
      element.dataset.row = number++;
      element.title = one.name;
      if (one.folded !== undefined) {
        element.type = "button";
        element.setAttribute("aria-expanded", String(!one.folded));
        element.addEventListener("click", () => rows.fold(one));
      }
      out.push(element);
    };
    for (const group of rows.groups) {
      place(node("button", "tl-group", node("span", "tl-fold", group.folded ? "▸" : "▾"), group.name), timeline.GROUP, group);
      for (const entry of group.folded ? [] : group.entries) {
        if (entry.level) {
          place(node("div", "tl-track", entry.name, node("span", "tl-most", timeline.level(entry.level.most, entry.level.unit))), entry.height, { name: entry.name });
        } else if (entry.track.lanes > 1) {
          place(node("button", "tl-track", node("span", "tl-fold", entry.folded ? "▸" : "▾"), entry.name), entry.height, entry);
        } else place(node("div", "tl-track", entry.name), entry.height, { name: entry.name });
      }
    }
    labels.replaceChildren(...out);
    if (kept !== undefined) labels.querySelector(`[data-row="${kept}"]`)?.focus();
  };

  const COLOURS = {
    surface: "paper", head: "raised", text: "ink", faint: "quiet", line: "line", accent: "accent",
    grid: "grid", other: "other", area: "area", veil: "veil", pointer: "pointer", use: "use", curve: "curve",
  };

  // Colours of the canvases: those of theme.css.
  timeline.paletteOf = (root) => {
    const probe = timeline.node("span");
    probe.hidden = true;
    root.append(probe);
    const colour = (name) => {
      probe.style.color = `var(--${name})`; // resolved by the browser, whichever theme it is
      return getComputedStyle(probe).color;
    };
    const numbers = (name) => palette[name].match(/[\d.]+/g).map(Number);
    const palette = Object.fromEntries(Object.entries(COLOURS).map(([name, ofTheme]) => [name, colour(ofTheme)]));
    probe.remove();
    const [red, green, blue] = numbers("surface");
    palette.theme = 0.2126 * red + 0.7152 * green + 0.0722 * blue < 128 ? "dark" : "light";
    const accent = numbers("accent");
    palette.accentPixel = ((255 << 24) | (accent[2] << 16) | (accent[1] << 8) | accent[0]) >>> 0;
    return palette;
  };
})();
