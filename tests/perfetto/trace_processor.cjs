// node trace_processor.cjs DIST REQUESTS REPLIES: the worker of Perfetto's UI, outside a browser.
const fs = require('fs');
const path = require('path');
const vm = require('vm');
const [dist, requests, replies] = process.argv.slice(2);
const node = process;
const out = [];
const read = (url) => fs.readFileSync(path.join(dist, path.basename(String(url))));
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = function () {};
globalThis.importScripts = () => {};
globalThis.location = {href: `file://${dist}/engine_bundle.js`};
globalThis.fetch = async (url) => new Response(read(url), {headers: {'content-type': 'application/wasm'}});
globalThis.XMLHttpRequest = class {
  open(method, url) { this.url = url; }
  send() { this.response = read(this.url).buffer; this.status = 200; this.onload?.(); }
};
const asked = fs.readFileSync(requests);
// Emscripten must not see node.
Object.defineProperty(globalThis, 'process', {value: undefined, configurable: true});
vm.runInThisContext(fs.readFileSync(path.join(dist, 'engine_bundle.js'), 'utf8'));
const port = {onmessage: null, postMessage: (data) => out.push(Buffer.from(data))};
self.onmessage({data: port});
setTimeout(() => {  // the module is compiled by then
  port.onmessage({data: new Uint8Array(asked)});
  fs.writeFileSync(replies, Buffer.concat(out));
  node.exit(0);
}, Number(node.env.COMPILE_MS ?? 5000));
