// Mouse, wheel and keys: as in Perfetto's viewer and in Nsight Systems, as far as these agree.
(() => {
  "use strict";
  const timeline = (cuptiprof.timeline ??= {});

  const MOVED = 4; // pixels from which on a press is a drag
  const NEARER = 1 / 1.2;
  const STEP = 0.12; // of the width

  timeline.HELP = [
    ["W, S or + , −", "zoom in and out; also Ctrl + wheel, or the wheel over the ruler"],
    ["A, D", "move left and right; also Shift + wheel or Shift + drag"],
    ["drag", "choose a stretch of time; over the ruler: zoom to it"],
    ["F", "zoom to the chosen slice or stretch, else show everything"],
    ["0 or Home", "show everything"],
    ["arrows", "next and previous slice of the row, row above and below"],
    ["L", "from work to the call that launched it, and back"],
    ["/", "search by name"],
    ["N, Shift + N", "next and previous of those found, or of the same name"],
    ["Esc", "let go of the slice, the stretch, the search"],
  ];

  // Keys of the timeline; actions as named below. What a key does is not done to the page as well.
  timeline.bindKeys = (root, actions) => {
    const keys = {
      w: () => actions.zoom(NEARER),
      "+": () => actions.zoom(NEARER),
      "=": () => actions.zoom(NEARER),
      s: () => actions.zoom(1 / NEARER),
      "-": () => actions.zoom(1 / NEARER),
      a: () => actions.pan(-STEP),
      d: () => actions.pan(STEP),
      f: () => actions.fit(),
      0: () => actions.whole(),
      home: () => actions.whole(),
      arrowleft: () => actions.beside(-1),
      arrowright: () => actions.beside(1),
      arrowup: () => actions.above(-1),
      arrowdown: () => actions.above(1),
      l: () => actions.launch(),
      n: (event) => actions.next(event.shiftKey),
      "/": () => actions.search(),
      escape: () => actions.clear(),
    };
    root.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target instanceof HTMLInputElement) {
        if (event.key === "Enter") actions.next(event.shiftKey);
        else if (event.key === "Escape") actions.clear();
        else return;
        event.preventDefault();
        return;
      }
      const key = event.key.toLowerCase();
      const isOfCanvas = event.target.classList.contains("tl-top");
      if (!isOfCanvas && (key.startsWith("arrow") || key === "home")) return;
      if (!Object.hasOwn(keys, key)) return;
      keys[key](event);
      event.preventDefault();
    });
  };

  // Presses and movements over a canvas whose width is that of the view.
  timeline.bindPointer = (canvas, { time, press, drag, drop, hover, leave, pan }) => {
    let begun = null;
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top, share: 1 / box.width };
    };
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button > 1) return;
      begun = { ...place(event), moves: event.shiftKey || event.button === 1, isDrag: false };
      begun.time = time(begun.x);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const at = place(event);
      if (!begun) {
        hover?.(at);
        return;
      }
      begun.isDrag ||= Math.abs(at.x - begun.x) >= MOVED;
      if (!begun.isDrag) return;
      if (begun.moves) {
        pan((begun.x - at.x) * at.share);
        begun.x = at.x;
      } else drag(begun.time, time(at.x));
    });
    canvas.addEventListener("pointerup", (event) => {
      if (!begun) return;
      const { isDrag, moves } = begun;
      begun = null;
      if (!isDrag) press(place(event));
      else if (!moves) drop();
    });
    canvas.addEventListener("pointercancel", () => (begun = null));
    canvas.addEventListener("pointerleave", () => leave?.());
  };

  // The wheel over a canvas: sideways it moves; with Ctrl, or where it `always` does, it zooms at the pointer; else the page scrolls.
  timeline.bindWheel = (canvas, view, always) => {
    canvas.addEventListener(
      "wheel",
      (event) => {
        const box = canvas.getBoundingClientRect();
        const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
        const across = (event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX) * lines;
        if (event.ctrlKey || event.metaKey || (always && !event.shiftKey)) {
          view.zoom(1.0025 ** (event.deltaY * lines), (event.clientX - box.left) / box.width, false);
        } else if (Math.abs(across) > Math.abs(event.shiftKey ? 0 : event.deltaY)) view.pan(across / box.width, false);
        else return;
        event.preventDefault();
      },
      { passive: false },
    );
  };
})();
