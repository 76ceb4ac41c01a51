"""Everything that wants a GPU, in one command: python -m benchmarks.hardware --out DIR [--wheels DIR] [--only PART ...]

The doctor, verify, the questions (benchmarks.probes), overhead beside the peers, agreement with torch.profiler and ncu, a soak,
what counters cost, the harness beside other tools that measure functions, fixtures for tests without a GPU, the gpu tests, other releases of CUPTI, planning and the transformer
example. Writes DIR/report.json and at most seven files beside it, none over 16 MB; DIR can be put into
benchmarks/results/hardware/ as it is, under the name that is printed. Each part is a process with a time limit: one that
fails, hangs or finds no time left is reported and the rest goes on. Under eight minutes in all. Without a GPU it says so and runs on the
stand-in, marked simulated.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import arguments, machine
from benchmarks.gpu_work import STAND_IN
from benchmarks.identity import FIELDS, folder_name
from cuptiprof.device.locate import driver_present

ROOT = Path(__file__).resolve().parents[1]
TOTAL_S = 460
FILES, FILE_BYTES = 8, 16_000_000
PRINTED = ("doctor", "verify", "soak", "harness", "cupti_versions", "planning")
"""Parts whose JSON is part of the report; the others' is a file."""


@dataclass(frozen=True)
class Part:
    """One process: `arguments` of this Python, the seconds it may take, the file of JSON that it writes."""

    name: str
    arguments: list[str]
    seconds: float
    json_file: Path | None = None


def run_part(part: Part, log: Path, until: float) -> tuple[dict[str, Any], str]:
    """Run a part; its line of the report and its standard output. Everything it says goes to the log."""
    began = time.monotonic()
    limit = min(part.seconds, until - began)
    if limit < 5:
        return {"part": part.name, "ok": False, "status": None, "seconds": 0.0, "tail": ["not run: no time left"]}, ""
    process = subprocess.Popen(
        [sys.executable, *part.arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    note = ""
    try:
        output, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # what it started too: a hung child keeps the pipes open
        output, errors = process.communicate()
        note = f"timed out after {limit:.0f} s"
    said = "\n".join(t.strip() for t in (output, errors, note) if t.strip())
    with log.open("a") as f:
        f.write(f"== {part.name}: {' '.join(part.arguments)} -> {process.returncode}\n{said}\n")
    seconds = round(time.monotonic() - began, 1)
    line = {"part": part.name, "ok": process.returncode == 0, "status": process.returncode, "seconds": seconds}
    return {**line, "tail": said.splitlines()[-3:]}, output


def parse_json(text: str) -> Any:
    """The JSON object in a text, or None."""
    try:
        return json.loads(text[text.index("{") : text.rindex("}") + 1])
    except ValueError:
        return None


def probe_answers(output: str, out: Path) -> list[Any]:
    """The probes' lines; the image of counter data among them becomes a file of its own."""
    lines = [parse_json(line) for line in output.splitlines() if line.startswith("{")]
    answers = [line for line in lines if line is not None]
    for line in answers:
        if line.get("probe") == "counter_image" and "answer" in line:
            (out / "counter_image.json").write_text(
                json.dumps({"simulated": line["simulated"], **line["answer"]}) + "\n"
            )
            line["answer"] = {k: v for k, v in line["answer"].items() if k != "image_zlib_base64"}
    return answers


def parts_of(device: str, out: Path, wheels: Path | None) -> list[Part]:
    """What is run, the most wanted first."""
    rehearsal = ["tests/behaviours/test_session_control.py", "tests/sim/test_end_to_end.py"]  # all would take minutes
    tests = ["-m", "gpu", "tests/gpu", "tests/behaviours"] if device == "cuda" else rehearsal
    harness = "cuda" if device == "cuda" else "host"  # the peers have no simulated device
    example = ["examples/train_transformer.py", "--steps", "5"]
    trace = str(out / "example.json.gz")
    files = {name: out / f"{name}.json" for name in ("counters", "overhead", "agreement")}

    def benchmark(name: str, *more: str) -> list[str]:
        return ["-m", f"benchmarks.{name}", "--device", device, *more, "--out", str(files[name])]

    parts = [
        Part("doctor", ["-m", "benchmarks.installed", "cuptiprof", "doctor", "--json", "--device", device], 30),
        Part(
            "verify", ["-m", "benchmarks.installed", "cuptiprof", "verify", "--format", "json", "--device", device], 60
        ),
        Part("native", ["-m", "benchmarks.overhead.native"], 60),  # built here, so that no other part waits for it
        Part("overhead", benchmark("overhead", "--quick", "--limit", "40"), 90, files["overhead"]),
        Part("agreement", benchmark("agreement"), 80, files["agreement"]),
        Part("soak", ["-m", "benchmarks.soak", "--device", device, "--seconds", "50"], 70),
        Part("probes", ["-m", "benchmarks.probes", "--all", "--device", device, "--seconds", "110"], 120),
        Part(
            "tests",
            ["-m", "benchmarks.installed", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", "60", *tests],
            120,
        ),
        Part("harness", ["-m", "benchmarks.harness_peers", "--device", harness, "--repeats", "5", "--limit", "30"], 75),
        Part("fixtures", ["-m", "benchmarks.hardware", "--fixtures", device, "--out", str(out)], 40),
        Part("counters", benchmark("counters", "--seconds", "30"), 60, files["counters"]),
    ]
    if wheels is not None:
        chosen = ["--wheels", str(wheels), "--device", "cuda" if device == "cuda" else "none"]
        parts.append(Part("cupti_versions", ["-m", "benchmarks.cupti_versions", *chosen], 60))
    return [
        *parts,
        Part("planning", ["-m", "benchmarks.planning", "--rounds", "7"], 40),
        Part(
            "example",
            ["-m", "benchmarks.installed", "cuptiprof", "run", "--device", device, "-f", "-o", trace, *example],
            40,
        ),
    ]


def where_measured(device: str, log: Path, until: float) -> dict[str, Any]:
    """Chip, driver and CUPTI version, asked in another process: a crash there must not cost the run."""
    line, output = run_part(Part("identity", ["-m", "benchmarks.identity", "--device", device], 40), log, until)
    found = parse_json(output) if line["ok"] else None
    return found if isinstance(found, dict) else dict.fromkeys(FIELDS, None)


def impersonal(text: str) -> str:
    """Without the folders of whoever ran it: results are committed."""
    for folder, name in (
        (str(ROOT), "."),
        (sys.prefix, "PYTHON"),
        (tempfile.gettempdir(), "TMP"),
        (str(Path.home()), "~"),
    ):
        if len(folder) > 1:
            text = text.replace(folder, name)
    return text


def stamp(file: Path, where: dict[str, Any]) -> None:
    """Say in a part's file where it was measured; a file that is no JSON object stays as it is."""
    try:
        data = json.loads(file.read_text())
    except (OSError, ValueError):
        return
    if isinstance(data, dict):
        data["machine"] = {**data.get("machine", {}), **where}
        file.write_text(impersonal(json.dumps(data, indent=1)) + "\n")


def keep_small(out: Path) -> list[str]:
    """Remove what is over the limits, the largest first; what was removed, in words."""
    said = []
    files = sorted((f for f in out.iterdir() if f.is_file()), key=lambda f: f.stat().st_size)
    while files and (len(files) > FILES or files[-1].stat().st_size > FILE_BYTES):
        largest = files.pop()
        said.append(f"{largest.name} left out: {largest.stat().st_size} bytes, {len(files) + 1} files")
        largest.unlink()
    return said


def record_fixtures(device: str, out: Path) -> None:
    """The recorded buffers and images, as one file."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "benchmarks.record_fixtures", "--device", device, "--out", scratch]
        subprocess.run(command, cwd=ROOT, check=True)
        with tarfile.open(out / "fixtures.tar.gz", "w:gz") as packed:
            packed.add(scratch, "fixtures")


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--fixtures", choices=("cuda", "sim"), help="only record fixtures into DIR (a part of the run)")
    parser.add_argument("--wheels", type=Path, help="wheels of other CUPTI releases (see benchmarks.cupti_versions)")
    parser.add_argument(
        "--only", nargs="+", metavar="PART", help="only these parts, such as those that found no time left"
    )
    options = parser.parse_args()
    out = (options.out or Path("out/hardware")).resolve()
    out.mkdir(parents=True, exist_ok=True)
    if options.fixtures:
        record_fixtures(options.fixtures, out)
        return 0
    device = "cuda" if driver_present() else "sim"
    parts = parts_of(device, out, options.wheels and options.wheels.resolve())
    names = [p.name for p in parts]
    for name in options.only or ():
        if name not in names:
            parser.error(f"no part {name!r}; there are {', '.join(names)}")
    return run_all(out, device, [p for p in parts if not options.only or p.name in options.only])


def run_all(out: Path, device: str, parts: list[Part]) -> int:
    """All these parts; 0 when each did what it should."""
    log = out / "log.txt"
    log.write_text("")
    if device == "sim":
        print("No NVIDIA driver here: running on the simulated device. Nothing below is a measurement of hardware.")
    until = time.monotonic() + TOTAL_S
    where = where_measured(device, log, until)
    report: dict[str, Any] = {"benchmark": "hardware", "device": device, "simulated": device == "sim", "machine": machine() | where, "parts": []}  # fmt: skip
    if device == "sim":
        report["note"] = STAND_IN
    for part in parts:
        line, output = run_part(part, log, until)
        report["parts"].append(line)
        if part.name in PRINTED:
            report[part.name] = parse_json(output)
        elif part.name == "probes":
            report["probes"] = probe_answers(output, out)
        elif part.json_file is not None and part.json_file.is_file():
            stamp(part.json_file, where)
            report[part.name] = {"file": part.json_file.name}
        # Written after each part: what was learnt is kept even if this process is ended.
        (out / "report.json").write_text(impersonal(json.dumps(report, indent=1)) + "\n")
        verdict = "ok    " if line["ok"] else "FAILED"
        print(f"{verdict} {part.name:14} {line['seconds']:6.1f} s  {line['tail'][-1:]}", flush=True)
    for answer in report.get("probes", []):
        if "error" in answer:
            print(f"probe {answer['probe']}: {answer['error']}")
    log.write_text(impersonal(log.read_text()))
    for said in keep_small(out):
        print(said)
    print(f"written: {out}; to keep it: benchmarks/results/hardware/{folder_name(report['machine'])}/")
    return 0 if all(p["ok"] for p in report["parts"]) else 1


if __name__ == "__main__":
    sys.exit(main())
