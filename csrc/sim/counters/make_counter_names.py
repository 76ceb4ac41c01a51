"""Writes counter_names.def: what NVIDIA's own planner (cuptiProfilerHost*, no GPU needed) says of each metric.

Usage: make_counter_names.py FOLDER_WITH_LIBCUPTI [NAME...] > counter_names.def
Without names, those of the counter_names.def beside this file are asked for again. A name may carry a roll-up.
"""

from __future__ import annotations

import ctypes
import re
import sys
from ctypes import c_char_p, c_int, c_size_t, c_void_p
from pathlib import Path

CHIPS = ["GV100", "GA100", "AD104", "GH100", "GB100"]
TYPES = ["COUNTER", "RATIO", "THROUGHPUT"]
RANGE, SAMPLING = 0, 1  # CUpti_ProfilerType
HEAD = [("structSize", c_size_t), ("pPriv", c_void_p)]


class Initialize(ctypes.Structure):
    """CUpti_Profiler_Host_Initialize_Params."""

    _fields_ = [*HEAD, ("type", c_int), ("chip", c_char_p), ("availability", c_void_p), ("host", c_void_p)]


class Properties(ctypes.Structure):
    """CUpti_Profiler_Host_GetMetricProperties_Params."""

    _fields_ = [
        *HEAD,
        *[("host", c_void_p), ("name", c_char_p), ("description", c_char_p), ("unit", c_char_p)],
        *[("dimension", c_char_p), ("type", c_int)],
    ]


def properties(cupti: ctypes.CDLL, host: int, name: str) -> tuple[str, str, str, int] | None:
    """Description, hardware unit, dimension and type of a metric; None: this chip lacks it."""
    p = Properties(structSize=Properties.type.offset + 4, host=host, name=name.encode())
    if cupti.cuptiProfilerHostGetMetricProperties(ctypes.byref(p)) != 0:
        return None
    return p.description.decode(), p.unit.decode(), p.dimension.decode(), p.type


def main() -> None:
    """Print the table."""
    folder = Path(sys.argv[1])
    ctypes.CDLL(str(folder / "libnvperf_host.so"), ctypes.RTLD_GLOBAL)
    cupti = ctypes.CDLL(str(next(folder.glob("libcupti.so.*"))))
    names = sys.argv[2:]
    if not names:
        names = re.findall(r'^SIM_METRIC\("([^"]+)"', Path(__file__).with_name("counter_names.def").read_text(), re.M)
    print("// Metrics as NVIDIA's planner describes them (libcupti 13.0, make_counter_names.py). Chips, one bit each:")
    print("// " + ", ".join(f"{1 << i} {c}" for i, c in enumerate(CHIPS)) + "; first for ranges, then for PM sampling.")
    print("// SIM_METRIC(name, type, unit, dimension, range chips, sampling chips, description)")
    hosts = []
    for kind in (RANGE, SAMPLING):
        for i, chip in enumerate(CHIPS):
            p = Initialize(structSize=Initialize.host.offset + 8, type=kind, chip=chip.encode())
            if cupti.cuptiProfilerHostInitialize(ctypes.byref(p)) == 0:
                hosts.append((kind, i, p.host))
    for name in sorted(set(names)):
        masks, found = [0, 0], None
        for kind, i, host in hosts:
            if one := properties(cupti, host, name):
                masks[kind] |= 1 << i
                found = one
        if found:
            base = re.sub(r"\.(sum|avg|min|max|ratio|pct|max_rate)(\..*)?$", "", name)
            # The dimension of a plain counter is that of its name with a roll-up.
            text = found[0].replace("\\", "\\\\").replace('"', '\\"')
            print(
                f'SIM_METRIC("{base}", {TYPES[found[3]]}, "{found[1]}", "{found[2]}", {masks[0]}, {masks[1]},\n'
                f'           "{text}")'
            )


if __name__ == "__main__":
    main()
