"""Streams that are being captured, and modules that go: what waiting breaks, and what names outlive."""

from __future__ import annotations

import ctypes
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import cuptiprof
from benchmarks.gpu_work import Work
from cuptiprof.device.driver import Driver

MODES = ("global", "thread_local", "relaxed")
SPIN_NS = 50_000_000
# Runs for as many ns as its argument says.
PTX = """.version 7.0
.target sm_70
.address_size 64
.visible .entry {name}(.param .u64 ns)
{{
  .reg .pred %p; .reg .u64 %t<4>;
  ld.param.u64 %t0, [ns];
  mov.u64 %t1, %globaltimer;
again:
  mov.u64 %t2, %globaltimer;
  sub.u64 %t3, %t2, %t1;
  setp.lt.u64 %p, %t3, %t0;
  @%p bra again;
  ret;
}}
"""


def _in_thread(call: Callable[[], object]) -> str:
    """What became of `call` in another thread: "ok" or its error."""
    said: list[str] = []

    def run() -> None:
        try:
            call()
            said.append("ok")
        except Exception as e:
            said.append(f"{type(e).__name__}: {e}".splitlines()[0][:160])

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(20)
    return said[0] if said else "still waiting after 20 s"


def _captured(device: str, mode: str, meanwhile: Callable[[], str]) -> tuple[str, str]:
    """What `meanwhile` said while a stream of this thread was being captured, and what became of the graph."""
    said = ""
    if device != "cuda":
        from cuptiprof.sim.sim_device import Op, SimDevice

        sim = SimDevice()
        try:
            sim.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=5, stream=9, value=MODES.index(mode))
            sim.launch("_Z4nodev", stream=9)
            said = meanwhile()
            sim.call(Op.GRAPH_END_CAPTURE, graph_id=5, stream=9)
        except Exception as e:
            return said, f"{type(e).__name__}: {e}"
        return said, "ok"
    import torch

    x = torch.ones(1 << 12, device="cuda")
    torch.cuda.synchronize()
    graph: Any = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph, capture_error_mode=mode):
            x.add_(1)
            said = meanwhile()
            x.add_(1)
        graph.replay()
        torch.cuda.synchronize()
    except Exception as e:
        return said, f"{type(e).__name__}: {e}".splitlines()[0][:160]
    return said, "ok"


def waiting_beside_a_capture(work: Work) -> dict[str, Any]:
    """Does a thread that waits for the GPU break another thread's capture, in each capture mode?

    Assumed: it does in all three: the wait fails (900), and so does the end of the capture (901).
    """
    answer: dict[str, Any] = {}
    for mode in MODES:
        waited, graph = _captured(work.device, mode, lambda: _in_thread(work.synchronize))
        answer[mode] = {"wait": waited, "graph": graph}
    answer["as assumed"] = all(a["wait"] != "ok" and a["graph"] != "ok" for a in answer.values())
    return answer


def _stopped_beside_a_capture(work: Work, metrics: list[str] | None) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    for mode in MODES:
        results: list[cuptiprof.Result] = []
        prof = cuptiprof.profile(device=work.device, metrics=metrics)
        prof.start()
        work.small(20)
        work.synchronize()

        def stop(prof: cuptiprof.profile = prof, results: list[cuptiprof.Result] = results) -> None:
            results.append(prof.stop())

        begin = time.perf_counter()
        stopped, graph = _captured(work.device, mode, lambda stop=stop: _in_thread(stop))  # type: ignore[misc]
        took = time.perf_counter() - begin
        if not results:
            results.append(prof.stop())
        answer[mode] = {
            "stop": stopped,
            "seconds": round(took, 2),
            "graph": graph,
            "kernels": len(results[0].kernels),
            "note": results[0].metadata.get("note", ""),
        }
    answer["as assumed"] = all(a["stop"] == a["graph"] == "ok" and "captured" in a["note"] for a in answer.values())
    return answer


def stop_beside_a_capture(work: Work) -> dict[str, Any]:
    """Does a graph survive that is being captured while another thread stops a session?

    Assumed: it does, in every mode; the result says that it did not wait, and has the kernels that were done.
    """
    return _stopped_beside_a_capture(work, None)


def counted_stop_beside_a_capture(work: Work) -> dict[str, Any]:
    """Does a graph survive that is being captured while another thread stops a session with counters?

    Assumed: it does, in every mode; the result says that it did not wait, and has the kernels that were done.
    """
    return _stopped_beside_a_capture(work, ["ipc"])


def _rounds_of_modules(device: str, rounds: int) -> None:
    """Each round loads a module, launches its kernel (which runs for 50 ms) and unloads it; nobody waits."""
    names = [f"module_{i:02}" for i in range(rounds)]
    if device != "cuda":
        from cuptiprof.sim.sim_device import DRIVER, Op, SimDevice

        sim = SimDevice()
        for name in names:
            sim.launch(name, duration_ns=SPIN_NS)
            sim.call(Op.MODULE_UNLOAD, domain=DRIVER)
        sim.synchronize()
        return
    call = Driver().call
    for name in names:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        call("cuModuleLoadData", ctypes.byref(module), PTX.format(name=name).encode())
        call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        ns = ctypes.c_uint64(SPIN_NS)
        arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(ns), ctypes.c_void_p))
        call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, None, arguments, None)
        call("cuModuleUnload", module)


def names_after_unload(work: Work) -> dict[str, Any]:
    """Is a kernel's name in its record still there after the module was unloaded while the kernel ran?

    Assumed: nothing; names are copied at launches. "record": as the record has it, without those copies. Where both are right, the
    copies could go.
    """
    rounds = 12
    answer: dict[str, Any] = {}
    for follows_launches, key in ((True, "copied at the launch"), (False, "record")):
        prof = cuptiprof.profile(device=work.device, activities=["kernel"])
        prof._follows_launches = follows_launches
        with prof:
            _rounds_of_modules(work.device, rounds)
        names = Counter(str(n) for n in prof.result().kernels["name"])
        right = sum(names.get(f"module_{i:02}", 0) == 1 for i in range(rounds))
        answer[key] = f"{right} of {rounds} names right"
    return answer


PROBES = (waiting_beside_a_capture, stop_beside_a_capture, counted_stop_beside_a_capture, names_after_unload)
