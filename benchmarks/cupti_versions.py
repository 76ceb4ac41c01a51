"""The same binary with other releases of libcupti: python -m benchmarks.cupti_versions --wheels DIR [--device cuda]

DIR holds wheels of nvidia-cuda-cupti and nvidia-cuda-cupti-cu12, or folders into which some were unpacked (``pip download
--no-deps -d DIR 'nvidia-cuda-cupti==13.4.*'``). Each release gets processes of its own, with the path in the variable that
``cuptiprof.device.locate`` reads: the doctor, records of that release's layout walked by its own iterator, and on a GPU some
probes of ``cuptiprof verify``. A release that cannot be loaded here says why. Exit 1 where one that can gives wrong records.
"""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.common import arguments, finish
from cuptiprof.device.locate import VARIABLE, file_version, needs_driver

KERNEL, MEMCPY, MEMSET, SYNCHRONIZATION, API, MARKER = 10, 1, 2, 38, 5, 12
# Bytes of (kernel, copy, set, synchronisation) as each release writes them; API calls and markers never changed. From the
# headers of the releases; releases without a row have the newest older one's.
LAYOUTS = {
    (12, 6): (208, 88, 88, 40),
    (12, 8): (208, 96, 88, 56),
    (13, 0): (216, 96, 88, 56),
    (13, 1): (224, 96, 88, 56),
    (13, 3): (232, 96, 88, 56),
    (13, 4): (248, 112, 104, 56),
}
PROBES = ("duration", "copies", "graph", "fma-f32", "stream-copy")
MEMBER_LIMIT = 256 << 20
CHILD_SECONDS = 60


def layout(release: str) -> dict[int, int]:
    """Bytes of a record by activity kind, for a release such as "13.0" or "13.4 or newer".

    Raises:
        ValueError: not a release, or one older than any that is known.
    """
    match = re.match(r"(\d+)\.(\d+)", release)
    if not match:
        raise ValueError(f"not a CUDA release: {release!r}")
    wanted = int(match[1]), int(match[2])
    known = [r for r in sorted(LAYOUTS) if r <= wanted]
    if not known:
        raise ValueError(f"the layout of CUDA {release} is not known")
    sizes = dict(zip((KERNEL, MEMCPY, MEMSET, SYNCHRONIZATION), LAYOUTS[known[-1]], strict=True))
    return sizes | {API: 40, MARKER: 56}


def walk_records(path: str, release: str) -> dict[str, Any]:
    """Records of each kind, laid out as this release writes them, walked by its own iterator through our loader.

    Raises:
        CuptiprofError: the library refuses. ValueError: an unknown release.
    """
    from cuptiprof import _core

    sizes = layout(release)
    library = _core.load_cupti(path, "benchmarks.cupti_versions")
    buffer, expected = bytearray(), []
    for kind in [KERNEL, API, KERNEL, MEMCPY, MEMSET, MARKER, SYNCHRONIZATION, API] * 50:
        expected.append((kind, len(buffer)))
        buffer += struct.pack("<I", kind) + bytes(sizes[kind] - 4)
    walked = library.record_kinds(buffer, len(buffer))
    return {
        "cupti_version": library.version,
        "records": len(walked),
        "records_right": walked == expected,
        "missing_features": [f["name"] for f in library.features() if not f["works"]],
    }


def unpack(folder: Path, scratch: Path) -> Iterator[Path]:
    """Every libcupti under `folder`: files as they lie there, and those in wheels, unpacked below `scratch`."""
    for file in sorted(folder.rglob("libcupti.so.1[23]")):
        if file.is_file():
            yield file
    for i, wheel in enumerate(sorted(folder.glob("nvidia_cuda_cupti*.whl"))):
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.infolist():
                # nvperf too: counters need the one that belongs to it. RECORD tells the release.
                wanted = re.search(r"/lib/lib(cupti|nvperf_host|nvperf_target)\.so[.0-9]*$|\.dist-info/RECORD$", member.filename)  # fmt: skip
                if wanted and member.file_size <= MEMBER_LIMIT:
                    archive.extract(member, scratch / str(i))  # extract() keeps names inside the folder
        yield from sorted((scratch / str(i)).rglob("libcupti.so.1[23]"))


def run_child(command: list[str], path: Path) -> tuple[int | None, str]:
    """(status, output) of this Python with the library named to it; status None: it hung. A crash is a negative status."""
    try:
        done = subprocess.run(
            [sys.executable, *command],
            env={**os.environ, VARIABLE: str(path)},
            cwd=Path(__file__).resolve().parents[1],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=CHILD_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout or done.stderr


def parsed(output: str, path: Path) -> dict[str, Any]:
    """The JSON object that a child printed, without the folder of `path`; its last words as an error where there is none."""
    try:
        value = json.loads(output[output.index("{") : output.rindex("}") + 1].replace(str(path.parent), "..."))
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"error": " ".join(output.split())[-300:]}


def examine(path: Path, device: str) -> dict[str, Any]:
    """What one release does here."""
    release, told_by = file_version(path)
    out: dict[str, Any] = {"release": release, "told_by": told_by, "needs_driver": needs_driver(str(path))}
    status, said = run_child(["-m", "benchmarks.installed", "cuptiprof", "doctor", "--json", "--device", "cuda"], path)
    doctor = parsed(said, path)
    out["doctor"] = {
        "status": status,
        "libcupti_error": doctor.get("libcupti", {}).get("error", doctor.get("error", "")),
        "can_trace": doctor.get("can_trace"),
        "first_finding": next((f["what"] for f in doctor.get("findings", [])), ""),
    }
    status, said = run_child(["-m", "benchmarks.cupti_versions", "--walk", str(path)], path)
    out["records"] = parsed(said, path) | ({} if status == 0 else {"status": status})
    if device == "cuda":
        chosen = [word for p in PROBES for word in ("--probe", p)]
        status, said = run_child(
            ["-m", "benchmarks.installed", "cuptiprof", "verify", "--format", "json", "--device", "cuda", *chosen], path
        )
        found = parsed(said, path)
        out["verify"] = {"status": status, **{k: found[k] for k in ("counts", "error") if k in found}}
    return out


def right(found: dict[str, Any], device: str) -> bool:
    """Whether nothing is wrong: records walk right, or the release refuses to work without a driver and says so."""
    if device == "cuda":
        return found["records"].get("records_right") is True and found["verify"]["status"] == 0
    if found["needs_driver"]:
        return "no NVIDIA driver" in str(found["records"].get("error", "")) and found["doctor"]["status"] in (0, 1, 2)
    return found["records"].get("records_right") is True


def measure(wheels: Path, device: str) -> dict[str, Any]:
    """Every release in a folder."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for path in unpack(wheels, Path(scratch)):
            one = examine(path, device)
            found[one["release"] or path.name] = one | {"right": right(one, device)}
    releases = dict(sorted(found.items(), key=lambda item: [int(n) for n in re.findall(r"\d+", item[0])]))
    return {"benchmark": "cupti_versions", "device": device, "simulated": False, "releases": releases}


def main() -> int:
    from cuptiprof.device.locate import driver_present
    from cuptiprof.errors import CuptiprofError

    parser = arguments(__doc__)
    parser.add_argument("--wheels", type=Path, help="folder of wheels or unpacked ones")
    parser.add_argument(
        "--device", choices=("cuda", "none"), help="none: nothing that needs a GPU; default: what is here"
    )
    parser.add_argument(
        "--walk", metavar="LIBRARY", help="only walk records with this library (a child of this program)"
    )
    options = parser.parse_args()
    if options.walk:
        try:
            print(json.dumps(walk_records(options.walk, file_version(options.walk)[0])))
        except (CuptiprofError, ValueError) as e:
            print(json.dumps({"error": " ".join(str(e).split())}))
            return 2
        return 0
    if options.wheels is None or not options.wheels.is_dir():
        parser.error("--wheels: a folder that exists")
    data = measure(options.wheels, options.device or ("cuda" if driver_present() else "none"))
    finish(data, options.out)
    return 0 if data["releases"] and all(r["right"] for r in data["releases"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
