// A profile by pprof-format, as JSON: launches and ns by the label of the kernel and by the innermost location.
// node decode.mjs PPROF_FORMAT/index.js FILE.pb.gz
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";

const [library, file] = process.argv.slice(2);
const { Profile } = await import(pathToFileURL(library));
const profile = Profile.decode(gunzipSync(readFileSync(file)));
const text = (number) => profile.stringTable.strings[Number(number)];
const functions = new Map(profile.function.map((one) => [Number(one.id), text(one.name)]));
const places = new Map(profile.location.map((one) => [Number(one.id), functions.get(Number(one.line[0].functionId))]));
const types = profile.sampleType.map((one) => `${text(one.type)}/${text(one.unit)}`);
const byLabel = {}, byPlace = {};
for (const sample of profile.sample) {
  const label = sample.label.find((one) => text(one.key) === "kernel");
  for (const [out, name] of [[byLabel, text(label.str)], [byPlace, places.get(Number(sample.locationId[0]))]]) {
    out[name] = (out[name] ?? types.map(() => 0)).map((value, i) => value + Number(sample.value[i]));
  }
}
console.log(JSON.stringify({ types, byLabel, byPlace }));
