// Colours of slices: the same name always has the same, of one lightness, so that text on it can be read in light and in dark.
(() => {
  "use strict";
  const timeline = (cuptiprof.timeline ??= {});

  const FIXED_HUE = { memcpy: 150, memset: 320, wait: 75, overhead: 25, step: 260, module: 285, mark: 40, sample: 200 };
  const LOOK = {
    light: { lightness: 0.82, chroma: 0.085, marked: [0.7, 0.15], text: "#16181d", faint: 0.16 },
    dark: { lightness: 0.47, chroma: 0.085, marked: [0.6, 0.15], text: "#f4f5f7", faint: 0.22 },
  };

  timeline.Colours = class {
    constructor(faces, theme, background) {
      const look = LOOK[theme];
      this.text = look.text;
      this.background = parse(background);
      const count = faces.name.length;
      this.plain = new Uint32Array(count);
      this.marked = new Uint32Array(count);
      this.faint = new Uint32Array(count);
      for (let i = 0; i < count; i++) {
        const hash = hashed(faces.label[i] || faces.name[i]);
        const kind = faces.kind[i];
        const base = FIXED_HUE[kind];
        const hue = base === undefined ? hash % 360 : base + ((hash >>> 9) % 31) - 15;
        const chroma = look.chroma * (kind === "step" || kind === "wait" ? 0.5 : 1);
        const lightness = look.lightness + (((hash >>> 16) % 5) - 2) * 0.012;
        this.plain[i] = oklch(lightness, chroma, hue);
        this.marked[i] = oklch(look.marked[0], look.marked[1], hue);
        this.faint[i] = mix(this.background, this.plain[i], look.faint);
      }
    }
  };

  // Of two packed colours (the byte order of ImageData) the second by `share`.
  function mix(one, other, share) {
    const part = Math.round(share * 256);
    const red = ((one & 255) * (256 - part) + (other & 255) * part) >> 8;
    const green = (((one >>> 8) & 255) * (256 - part) + ((other >>> 8) & 255) * part) >> 8;
    const blue = (((one >>> 16) & 255) * (256 - part) + ((other >>> 16) & 255) * part) >> 8;
    return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  }
  timeline.mixColours = mix;

  // FNV-1a.
  function hashed(text) {
    let hash = 0x811c9dc5;
    for (let i = 0; i < Math.min(text.length, 256); i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
    return (hash ^ (hash >>> 15)) >>> 0;
  }

  // Björn Ottosson, "A perceptual color space for image processing" (2020): OKLCh to sRGB.
  function oklch(lightness, chroma, hue) {
    const a = chroma * Math.cos((hue * Math.PI) / 180);
    const b = chroma * Math.sin((hue * Math.PI) / 180);
    const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
    const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
    const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
    return packed(
      4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
      -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
      -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
    );
  }

  function packed(...linear) {
    const [red, green, blue] = linear.map((value) => {
      const bounded = Math.min(1, Math.max(0, value));
      const encoded = bounded <= 0.0031308 ? 12.92 * bounded : 1.055 * bounded ** (1 / 2.4) - 0.055;
      return Math.round(255 * encoded);
    });
    return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  }

  // "rgb(r, g, b)", as getComputedStyle gives it.
  function parse(colour) {
    const parts = colour.match(/[\d.]+/g).map(Number);
    return ((255 << 24) | (parts[2] << 16) | (parts[1] << 8) | parts[0]) >>> 0;
  }
})();
