"""Where releases of PyTorch have the fields that cuptiprof reads, and which of the functions it calls: from their wheels, without loading them.

    pip download --no-deps --only-binary=:all: torch==2.7.1
    python make.py torch-2.7.1-*.whl > layouts.json

The wheel's own headers are compiled (x86-64, g++), so that the offsets are the compiler's; functions are read from the libraries' symbol tables (nm).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

_PROBE = """
#include <ATen/record_function.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>
#include <cstddef>
using Call = at::RecordFunction;
using Callback = at::RecordFunctionCallback;
using Comms = torch::ParamCommsDebugInfo;
extern "C" const unsigned long layout[] = {
    %s
};
"""
_STEP = "offsetof(Call, step_callbacks_) + offsetof(at::StepCallbacks, "
FIELDS = {
    "call.thread": _STEP + "thread_id_)",
    "call.scope": _STEP + "scope_)",
    "call.sequence": "offsetof(Call, sequence_nr_)",
    "call.inputs": "offsetof(Call, inputs_)",
    "call.forward_thread": "offsetof(Call, fwd_thread_id_)",
    "call.size": "sizeof(Call)",
    "callback.start": "offsetof(Callback, start_)",
    "callback.end": "offsetof(Callback, end_)",
    "callback.sampling_probability": "offsetof(Callback, sampling_prob_)",
    "callback.scopes": "offsetof(Callback, scopes_)",
    "callback.needs_inputs": "offsetof(Callback, needs_inputs_)",
    "callback.needs_outputs": "offsetof(Callback, needs_outputs_)",
    "callback.needs_ids": "offsetof(Callback, needs_ids_)",
    "callback.size": "sizeof(Callback)",
    "scopes": "(unsigned long)at::RecordScope::NUM_SCOPES",
    "scope.backward": "(unsigned long)at::RecordScope::BACKWARD_FUNCTION",
    "scope.user": "(unsigned long)at::RecordScope::USER_SCOPE",
    "debug_info_kind.size": "sizeof(c10::DebugInfoKind)",
    "debug_info.size": "sizeof(c10::DebugInfoBase)",
    "comms.group": "offsetof(Comms, pgName_)",
    "comms.rank": "offsetof(Comms, rank_)",
    "comms.group_size": "offsetof(Comms, worldSize_)",
    "comms.name": "offsetof(Comms, collectiveName_)",
    "comms.in_elements": "offsetof(Comms, inMessageNelems_)",
    "comms.out_elements": "offsetof(Comms, outMessageNelems_)",
    "comms.type": "offsetof(Comms, dType_)",
    "comms.in_splits": "offsetof(Comms, inputSplitSizes_)",
    "comms.first_rank": "offsetof(Comms, globalRankStart_)",
    "comms.rank_stride": "offsetof(Comms, globalRankStride_)",
    "comms.ranks": "offsetof(Comms, groupRanks_)",
    "comms.is_async": "offsetof(Comms, isAsynchronizedOp_)",
    "comms.sequence": "offsetof(Comms, sequenceNumber_)",
    "comms.size": "sizeof(Comms)",
}
"""Name -> what the compiler is asked for."""
_LATER = {"comms.is_async": "isAsynchronizedOp_", "comms.sequence": "sequenceNumber_"}
"""Fields that older releases do not have."""

_SYMBOLS = re.compile(
    r"_ZNK?(2at14RecordFunction|2at17addGlobalCallback|2at14removeCallback|3c1020ThreadLocalDebugInfo|2at15sequence_number|"
    r"3c1013DebugInfoKind16PARAM_COMMS_INFO|5torch19ParamCommsDebugInfoC1|"
    r"5torch8autograd(25get_current_graph_task_id|16get_current_node))"
)
_LIBRARIES = ("torch/lib/libtorch_cpu.so", "torch/lib/libc10.so")


def layout_of(wheel: Path) -> dict[str, object]:
    """What is in this wheel."""
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        wanted = [n for n in archive.namelist() if n.startswith("torch/include/") or n in _LIBRARIES]
        archive.extractall(folder, wanted)
        config = archive.read("torch/share/cmake/Torch/TorchConfig.cmake").decode()
        old_strings = "_GLIBCXX_USE_CXX11_ABI=0" in config
        return {
            "old_strings": old_strings,
            **_offsets(Path(folder), old_strings),
            "symbols": sorted(s for library in _LIBRARIES for s in _exported(Path(folder, library))),
        }


def _offsets(folder: Path, old_strings: bool) -> dict[str, int]:
    probe = folder / "probe.cpp"
    comms = (folder / "torch/include/torch/csrc/distributed/c10d/ParamCommsUtils.hpp").read_text()
    fields = {name: field for name, field in FIELDS.items() if name not in _LATER or _LATER[name] in comms}
    probe.write_text(_PROBE % ",\n    ".join(fields.values()))
    command = ["g++", "-std=c++20", "-fno-access-control", "-w", "-S", "-o", "-", f"-I{folder / 'torch/include'}",
               f"-D_GLIBCXX_USE_CXX11_ABI={int(not old_strings)}", str(probe)]  # fmt: skip
    assembly = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    numbers = re.findall(r"\t\.(quad|zero)\t(\d+)", assembly[assembly.index("\nlayout:") :])[: len(fields)]
    return dict(zip(fields, (0 if kind == "zero" else int(n) for kind, n in numbers), strict=True))


def _exported(library: Path) -> list[str]:
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", str(library)], check=True, capture_output=True, text=True
    ).stdout
    return [line.split()[-1] for line in listed.splitlines() if _SYMBOLS.match(line.split()[-1])]


if __name__ == "__main__":
    wheels = sorted(map(Path, sys.argv[1:]))
    print(json.dumps({re.split(r"[-+]", wheel.name)[1]: layout_of(wheel) for wheel in wheels}, indent=1))
