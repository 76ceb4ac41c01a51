"""Sessions that come and go while threads train: ``python -m torch_programs.stress SESSIONS [SOURCE[:LEVEL] ...]``.

What a session began in the middle of it does not know; all else has to be right, and nothing may be missing in between.
"""

from __future__ import annotations

import ctypes
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

import cuptiprof
from torch_programs.compare import columns, rows_by_thread
from torch_programs.models import mlp
from torch_programs.nodes import follow_modules
from torch_programs.programs import vectors
from torch_programs.running import OnlyOurs
from torch_programs.truth import Launch, NotedSimulation, Truth


def has_observers() -> bool:
    """at::hasGlobalCallbacks(): whether anybody observes operators of all threads."""
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
    function = library._ZN2at18hasGlobalCallbacksEv
    function.restype = ctypes.c_bool
    return bool(function())


class Trainers:
    """Threads that train until the end, each in a region and with a model of its own."""

    def __init__(self, truth: Truth, count: int = 3) -> None:
        self._truth = truth
        self._stop = threading.Event()
        self._rounds = [0] * count
        self.errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._train, args=(i,)) for i in range(count)]

    def _train(self, number: int) -> None:
        truth = self._truth
        try:
            model = mlp(f"Trained{number}")
            follow_modules(model, truth, f"Trained{number}")
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            while not self._stop.is_set():
                with truth.region(f"step of {number}"):
                    x, y = vectors()
                    loss = F.cross_entropy(model(x), y)
                    with truth.region("backward"), truth.backward():
                        loss.backward()
                    optimizer.step()
                    optimizer.zero_grad()
                self._rounds[number] += 1
        except BaseException as e:
            self.errors.append(e)

    def wait_for_rounds(self, count: int) -> None:
        """So many whole steps of each thread."""
        wanted = [done + 1 + count for done in self._rounds]
        end = time.monotonic() + 60
        while any(done < want for done, want in zip(self._rounds, wanted, strict=True)):
            assert not self.errors and time.monotonic() < end, self.errors
            time.sleep(0.001)

    def __enter__(self) -> Trainers:
        for thread in self._threads:
            thread.start()
        self.wait_for_rounds(1)
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


def _counts(rows: dict[int, list[Launch]]) -> dict[int, int]:
    return {thread: len(of_thread) for thread, of_thread in rows.items()}


class _Noted(dict[int, list[Launch]]):
    """All launches so far by thread; takes new ones out of the truth."""

    def update_from(self, truth: Truth) -> dict[int, int]:
        for launch in truth.take():
            self.setdefault(launch.thread, []).append(launch)
        return _counts(self)


def check(rows: list[dict[str, Any]], noted: list[Launch], first: range, last: range, names: list[str]) -> str:
    """What is wrong with a session's rows of one thread, which begin and end somewhere in these ranges of what was noted.

    While it starts and stops, kernels, copies, operators and modules are followed one after the other: those rows are counted only.
    """
    began, ends = first.stop - 1, last.start
    said = f"{len(rows)} rows, of launches {first} to {last}"
    for end in last:
        whole = rows[max(0, len(rows) - (end - began)) :]
        launches = noted[began:end]
        if len(rows) - len(whole) > began - first.start or [r["table"] for r in whole] != [n.table for n in launches]:
            continue
        wrong = [
            (row, launch)
            for number, (row, launch) in enumerate(zip(whole, launches, strict=True))
            if began + number < ends and not _agree(row, launch, names, _is_known(launches, number))
        ]
        if not wrong:
            return ""
        said = f"{wrong[-1]}, {len(wrong)} of {len(rows)}"
    return said


def _is_known(launches: list[Launch], number: int) -> bool:
    """Not of an operator, or a node of backward, that may have begun before the session."""
    launch, first = launches[number], launches[0]
    return number > 0 and (not launch.node or any(n.node != first.node for n in launches[: number + 1]))


def _agree(row: dict[str, Any], launch: Launch, names: list[str], is_known: bool) -> bool:
    """Regions, operators and nodes from before the session are not known to it."""
    if is_known:
        unknown: dict[str, tuple[Any, ...]] = {}
    elif launch.backward:
        unknown = {"operator": ("", launch.operator), "backward": (0,)}
    else:
        unknown = {"operator": ("",)}
    if launch.of_node:  # which may have been made before modules were followed
        unknown["module"] = ("", "(unattributed)")
    for name in set(names) - {"step"}:
        found = row[name].rpartition("/")[2] if name == "operator" else row[name]
        true = getattr(launch, name)
        if found == true or found in unknown.get(name, ()):
            continue
        if name != "region" or not true.endswith(found):
            return False
    return True


def main(sessions: int, sources: dict[str, str]) -> int:
    names = columns(list(sources))
    simulation, truth, noted = NotedSimulation(), Truth(), _Noted()
    simulation.truth = truth
    wrong: list[str] = []
    launches = 0
    with Trainers(truth) as trainers:
        for number in range(sessions):
            before = noted.update_from(truth)
            prof = cuptiprof.profile(device=OnlyOurs(), sources=sources or None).start()
            started = noted.update_from(truth)
            trainers.wait_for_rounds(1)
            stopping = noted.update_from(truth)
            prof.stop()
            after = noted.update_from(truth)
            result = prof.result()
            if has_observers():
                wrong.append(f"session {number}: torch is still observed")
            rows = rows_by_thread(result, names)
            # A launch that was on its way when the session began is nobody's, and counted.
            nobodys = len(rows.pop(0, []))
            losses = {name: count for name, count in result.losses.items() if count}
            if losses != ({"orphan_correlations": nobodys} if nobodys else {}):
                wrong.append(f"session {number}: losses: {losses}, {nobodys} rows of no thread")
            for thread in noted:
                first = range(before.get(thread, 0), started.get(thread, 0) + 1)
                last = range(stopping.get(thread, 0), after[thread] + 1)
                launches += len(rows.get(thread, []))
                if said := check(rows.get(thread, []), noted[thread], first, last, names):
                    wrong.append(f"session {number}, thread {thread}: {said}")
    wrong += map(repr, trainers.errors)
    print(json.dumps({"sessions": sessions, "launches": launches, "wrong": wrong}))
    return 1 if wrong else 0


if __name__ == "__main__":
    asked = (source.partition(":") for source in sys.argv[2:])
    sys.exit(main(int(sys.argv[1]), {name: level for name, _, level in asked}))
