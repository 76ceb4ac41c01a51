"use strict";
// The other side of packed.py: base64, deflate, a head, and columns in planes of bytes.

const cuptiprof = {};

(() => {
  // Texts by number: at(i) is the text of row i or null, codes[i] its number (-1: none) in texts.
  class Texts {
    constructor(codes, texts) {
      this.codes = codes;
      this.texts = texts;
      this.length = codes.length;
    }

    at(row) {
      const code = this.codes[row];
      return code < 0 ? null : this.texts[code];
    }
  }

  const inflated = async (base64) => {
    const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  };

  // Sums of the planes, not shifts: these end at 32 bits.
  const integers = (head, bytes, out) => {
    const { rows, width, base, step } = head;
    let weight = 1;
    for (let plane = 0; plane < width; plane++, weight *= 256) {
      const from = plane * rows;
      for (let row = 0; row < rows; row++) out[row] += bytes[from + row] * weight;
    }
    let last = base;
    if (step === null) for (let row = 0; row < rows; row++) out[row] += base;
    else for (let row = 0; row < rows; row++) out[row] = last += out[row] + step;
    return out;
  };

  const floats = ({ rows, width }, bytes) => {
    const whole = new Uint8Array(rows * width);
    for (let plane = 0; plane < width; plane++) {
      for (let row = 0; row < rows; row++) whole[row * width + plane] = bytes[plane * rows + row];
    }
    return width === 4 ? new Float32Array(whole.buffer) : new Float64Array(whole.buffer);
  };

  const column = (head, bytes) => {
    if (head.kind === "float") return floats(head, bytes);
    if (head.kind === "text") return new Texts(integers(head, bytes, new Int32Array(head.rows)), head.texts);
    return integers(head, bytes, new Float64Array(head.rows));
  };

  // What a script element of data holds: {facts, columns}; columns has a Float64Array (integers, too) or Texts by name.
  cuptiprof.unpack = async (id) => {
    const bytes = await inflated(document.getElementById(id).textContent);
    const length = new DataView(bytes.buffer).getUint32(0, true);
    const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
    const columns = {};
    let at = 4 + length;
    for (const described of head.columns) {
      const size = described.rows * described.width;
      columns[described.name] = column(described, bytes.subarray(at, at + size));
      at += size;
    }
    return { facts: head.facts, columns };
  };

  cuptiprof.Texts = Texts;
})();
