"""Other profilers in the same process, before, beside and after us: who is refused, and does each get its records?"""

from __future__ import annotations

import importlib
import json
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import cuptiprof
from benchmarks.gpu_work import Work
from benchmarks.probes.raw import ONE_PASS
from cuptiprof.errors import CuptiprofError

LAUNCHES = 100
NOT_HERE = {"not applicable": "another tool would load NVIDIA's libcupti, not the stand-in"}


class Peer:
    """Another tool: ``tool()`` is open while it collects; ``kernels()`` is how many it got afterwards."""

    def tool(self) -> AbstractContextManager[object]:
        raise NotImplementedError

    def kernels(self) -> int:
        raise NotImplementedError


class TorchProfiler(Peer):
    """torch.profiler with CUDA activity."""

    def __init__(self) -> None:
        self._torch: Any = importlib.import_module("torch")
        self._prof: Any = None

    def tool(self) -> AbstractContextManager[object]:
        self._prof = self._torch.profiler.profile(activities=[self._torch.profiler.ProfilerActivity.CUDA])
        opened: AbstractContextManager[object] = self._prof
        return opened

    def kernels(self) -> int:
        return sum(e.count for e in self._prof.key_averages() if getattr(e, "device_time", 0) > 0)


class Proton(Peer):
    """Triton's Proton, CUPTI backend. Raises ImportError where triton is not installed."""

    def __init__(self) -> None:
        self._proton: Any = importlib.import_module("triton.profiler")
        self._count = 0

    @contextmanager
    def _collecting(self) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "proton"
            self._proton.start(str(path), backend="cupti")
            try:
                yield
            finally:
                self._proton.finalize()
            self._count = count_proton(json.loads(path.with_suffix(".hatchet").read_text()))

    def tool(self) -> AbstractContextManager[object]:
        collecting: AbstractContextManager[object] = self._collecting()
        return collecting

    def kernels(self) -> int:
        return self._count


def count_proton(tree: Any) -> int:
    """Kernel executions in a profile of Proton (hatchet's JSON: a list of frames with metrics and children)."""
    todo, total = list(tree), 0
    while todo:
        node = todo.pop()
        children = node.get("children", [])
        if not children:
            total += int(node.get("metrics", {}).get("count", 0))
        todo += children
    return total


def _ours(work: Work, options: dict[str, Any]) -> dict[str, Any]:
    """A session of ours alone: what it got, or what it was told."""
    try:
        with cuptiprof.profile(device=work.device, **options) as prof:
            work.small(LAUNCHES)
            work.synchronize()
    except CuptiprofError as e:
        return {"refused": f"{type(e).__name__}: {e}"}
    return _got(prof)


def _got(prof: cuptiprof.profile) -> dict[str, Any]:
    result = prof.result()
    out: dict[str, Any] = {
        "kernels": len(result.kernels),
        "losses": {k: v for k, v in dict(result.losses).items() if v},
    }
    if "counters" in result.metadata:
        out["counted"] = len(result.metric_ranges)
    return out


def _theirs(work: Work, peer: Peer) -> dict[str, Any]:
    try:
        with peer.tool():
            work.small(LAUNCHES)
            work.synchronize()
        return {"kernels": peer.kernels()}
    except Exception as e:  # whatever a peer raises is the answer
        return {"refused": f"{type(e).__name__}: {e}"}


def _in_turn(work: Work, peer: Peer, options: dict[str, Any]) -> dict[str, Any]:
    """Ours, theirs, ours, theirs, none beside another: does each get all of its launches, whoever was there before?"""
    steps = [
        ("ours first", _ours(work, options)),
        ("theirs after ours", _theirs(work, peer)),
        ("ours after theirs", _ours(work, options)),
        ("theirs again", _theirs(work, peer)),
    ]
    out: dict[str, Any] = dict(steps)
    out["each got all"] = all(got.get("kernels") == LAUNCHES for _, got in steps)
    return out


def _beside(work: Work, peer: Peer, options: dict[str, Any]) -> dict[str, Any]:
    """One inside the other, both ways round."""
    out: dict[str, Any] = {}
    for order in ("theirs outside", "ours outside"):
        got: dict[str, Any] = {}
        prof = cuptiprof.profile(device=work.device, **options)
        try:
            first, second = (peer.tool(), prof) if order == "theirs outside" else (prof, peer.tool())
            with first, second:
                work.small(LAUNCHES)
                work.synchronize()
        except CuptiprofError as e:
            got["ours refused"] = f"{type(e).__name__}: {e}"
        except Exception as e:  # whatever a peer raises is the answer
            got["theirs refused"] = f"{type(e).__name__}: {e}"
        try:
            got["ours"] = _got(prof)
        except CuptiprofError as e:
            got["ours"] = str(e)
        try:
            got["theirs"] = peer.kernels()
        except Exception as e:
            got["theirs"] = f"{type(e).__name__}: {e}"
        out[order] = got
    return out


def _with(work: Work, make: Callable[[], Peer], how: Callable[[Work, Peer, dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:  # fmt: skip
    if work.device != "cuda":
        return dict(NOT_HERE)
    try:
        peer = make()
    except ImportError as e:
        return {"not applicable": str(e)}
    tracing = {"activities": ["kernel"]}
    counting = {"activities": ["kernel"], "metrics": ONE_PASS, "strategy": "replay"}
    return {"tracing": how(work, peer, tracing), "counting": how(work, peer, counting)}


def torch_profiler_before_and_after(work: Work) -> dict[str, Any]:
    """torch.profiler before us and after us in one process: does each get all of its launches?

    Assumed: yes; who stops gives CUPTI back.
    """
    return _with(work, TorchProfiler, _in_turn)


def torch_profiler_beside(work: Work) -> dict[str, Any]:
    """torch.profiler active beside us: who is refused, and what does each of the two get?

    Assumed: one of the two is refused, and says so.
    """
    return _with(work, TorchProfiler, _beside)


def proton_before_and_after(work: Work) -> dict[str, Any]:
    """Triton's Proton before us and after us in one process: does each get all of its launches?

    Assumed: yes.
    """
    return _with(work, Proton, _in_turn)


def proton_beside(work: Work) -> dict[str, Any]:
    """Triton's Proton active beside us: who is refused, and what does each of the two get?

    Assumed: one of the two is refused, and says so.
    """
    return _with(work, Proton, _beside)


PROBES = [torch_profiler_before_and_after, torch_profiler_beside, proton_before_and_after, proton_beside]
