// Draws the lanes and levels in sight. Slices are written as pixels into one row of an image a lane, which is then stretched to the
// lane's height: what a frame costs depends on how wide it is, not on how many slices there are.
(() => {
  "use strict";
  const timeline = (cuptiprof.timeline ??= {});

  const WIDE = 2; // device pixels from which on a slice is drawn by itself
  const TEXT_FROM = 26; // CSS pixels from which on it has its name in it
  const FONT = '11px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
  const LEAST = 0.4; // how much of its colour the shortest slice has

  timeline.Painter = class {
    // state: {slices, rows, view, marks, unobserved, colours, palette}
    constructor(state) {
      this.state = state;
      this._strip = document.createElement("canvas");
      this._widths = new Float32Array(state.slices.faces.name.length);
    }

    // box: {width, height, ratio, scroll} of the canvas, in CSS pixels.
    paint(context, box) {
      const { rows, palette } = this.state;
      context.setTransform(box.ratio, 0, 0, box.ratio, 0, 0);
      context.fillStyle = palette.surface;
      context.fillRect(0, 0, box.width, box.height);
      this._grid(context, box);
      this.state.unobserved.paint(context, palette, this.state.view.start, this.state.view.end, box);
      const inSight = rows.lanes.filter(({ top }) => top + timeline.LANE > box.scroll && top < box.scroll + box.height);
      const texts = this._lanes(context, box, inSight);
      this._texts(context, box, texts);
      for (const { level, top } of rows.curves) {
        if (top + timeline.CURVE > box.scroll && top < box.scroll + box.height) this._curve(context, box, level, top);
      }
      this._groups(context, box);
    }

    _grid(context, { width, height }) {
      const { view, palette } = this.state;
      context.fillStyle = palette.grid;
      for (const { x } of timeline.ticks(view, width)) context.fillRect(Math.round(x), 0, 1, height);
    }

    _groups(context, { width, height, scroll }) {
      const { rows, palette } = this.state;
      for (const group of rows.groups) {
        const y = group.top - scroll;
        if (y + timeline.GROUP < 0 || y > height) continue;
        context.fillStyle = palette.head;
        context.fillRect(0, y, width, timeline.GROUP);
      }
      context.fillStyle = palette.line;
      for (const group of rows.groups) {
        for (const entry of group.folded ? [] : group.entries) {
          context.fillRect(0, entry.top + entry.height - scroll - 3, width, 1);
        }
      }
    }

    _lanes(context, { width, ratio, scroll }, inSight) {
      const across = Math.round(width * ratio);
      const down = Math.max(1, inSight.length);
      if (!this._image || this._image.width !== across || this._image.height < down) {
        this._image = new ImageData(across, down + 8);
        this._pixels = new Uint32Array(this._image.data.buffer);
        this._strip.width = across;
        this._strip.height = down + 8;
      }
      this._pixels.fill(0);
      const texts = [];
      inSight.forEach(({ lane, top }, row) => this._row(lane, row * across, across, ratio, top - scroll, texts));
      this._strip.getContext("2d").putImageData(this._image, 0, 0);
      context.imageSmoothingEnabled = false;
      inSight.forEach(({ top }, row) => {
        context.drawImage(this._strip, 0, row, across, 1, 0, top - scroll, width, timeline.LANE - 1);
      });
      return texts;
    }

    _row(lane, base, across, ratio, y, texts) {
      const { slices, view } = this.state;
      const { start, end, laneFrom, covered } = slices;
      const pixels = this._pixels;
      const [from, until] = [view.start, view.end];
      const scale = across / (until - from);
      const after = laneFrom[lane + 1];
      let i = slices.endingAfter(from, laneFrom[lane], after);
      while (i < after && start[i] < until) {
        const left = (start[i] - from) * scale;
        const right = (end[i] - from) * scale;
        if (right - left >= WIDE) {
          const x = Math.max(0, Math.round(left));
          const stop = Math.min(across, Math.max(x + 1, Math.round(right)));
          pixels.fill(this._colour(i), base + x, base + stop - (stop - x >= 4 ? 1 : 0));
          if (stop - x >= TEXT_FROM * ratio) texts.push({ slice: i, x: x / ratio, width: (stop - x) / ratio, y });
          i++;
          continue;
        }
        const x = Math.max(0, Math.floor(left));
        let next = slices.startingAt(from + (x + 1) / scale, i + 1, after);
        let longest = slices.longest(i, next);
        if ((end[longest] - start[longest]) * scale >= WIDE) {
          next = longest;
          longest = slices.longest(i, next);
        }
        if (x < across) pixels[base + x] = this._mixed(longest, i, next, (covered[next] - covered[i]) * scale);
        i = next;
      }
    }

    _colour(slice) {
      const { slices, marks, colours } = this.state;
      const face = slices.face[slice];
      if (!marks.isOn) return colours.plain[face];
      return marks.has(slice) ? colours.marked[face] : marks.dims ? colours.faint[face] : colours.plain[face];
    }

    // Of a pixel in which the slices [from, to) are: the colour of the longest, as strong as they cover it. What is marked is seen.
    _mixed(longest, from, to, share) {
      const { marks, palette, colours } = this.state;
      if (marks.isOn && marks.between(from, to) > 0) {
        return marks.has(longest) ? this._colour(longest) : palette.accentPixel;
      }
      return timeline.mixColours(colours.background, this._colour(longest), Math.min(1, LEAST + (1 - LEAST) * share));
    }

    _texts(context, box, texts) {
      const { slices, colours, marks } = this.state;
      context.font = FONT;
      context.textBaseline = "middle";
      context.fillStyle = colours.text;
      for (const { slice, x, width, y } of texts) {
        const face = slices.face[slice];
        const text = slices.faces.label[face] || slices.faces.name[face];
        this._widths[face] ||= context.measureText(text).width || 1;
        const room = width - 8;
        const fits = this._widths[face] <= room;
        const letters = fits ? text.length : Math.floor((room / this._widths[face]) * text.length) - 1;
        if (letters < 2) continue;
        context.globalAlpha = marks.isOn && marks.dims && !marks.has(slice) ? 0.45 : 1;
        if (marks.isOn && marks.dims && !marks.has(slice)) context.fillStyle = this.state.palette.text;
        else context.fillStyle = colours.text;
        context.fillText(fits ? text : `${text.slice(0, letters)}…`, x + 4, y + timeline.LANE / 2);
      }
      context.globalAlpha = 1;
    }

    _curve(context, { width, scroll }, level, top) {
      const { view, palette } = this.state;
      const bottom = top - scroll + timeline.CURVE - 1;
      const scale = (timeline.CURVE - 6) / (level.most - level.least || 1);
      const per = view.length / width;
      context.fillStyle = level.isUse ? palette.use : palette.curve;
      context.beginPath();
      context.moveTo(0, bottom);
      for (let x = 0; x < width; x++) {
        const from = view.start + x * per;
        const value = from + per < 0 || from > view.span ? null : level.between(from, from + per);
        const y = value === null ? bottom : bottom - (value - level.least) * scale;
        context.lineTo(x, y);
        context.lineTo(x + 1, y);
      }
      context.lineTo(width, bottom);
      context.fill();
    }
  };

  // Marks of the ruler in sight: {time, x, text}.
  timeline.ticks = (view, width) => {
    const step = timeline.niceStep(view.length, Math.max(2, width / 130));
    const out = [];
    for (let n = Math.ceil(Math.max(view.start, 0) / step); n * step <= Math.min(view.end, view.span); n++) {
      const time = n * step;
      out.push({ time, x: ((time - view.start) / view.length) * width, text: timeline.moment(time, step) });
    }
    return out;
  };
})();
