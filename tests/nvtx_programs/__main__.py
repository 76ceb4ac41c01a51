"""Run so many random programs: several threads, one step at a time, each on the thread that it is for."""

from __future__ import annotations

import json
import queue
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import cuptiprof
from cuptiprof.data.result import Result

if __name__ == "__main__":
    cuptiprof.inject_nvtx()

import nvtx
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cuptiprof.sim.sim_device import SimDevice
from nvtx_programs.model import COLORS, Truth, attributes

DOMAINS = (None, "io", "a/b@c,d", "größe")
NAMES = ("fwd", "a/b", "x@y", "p,q", "back\\slash", "", "ünïcödé 😀", "[tail]")
CATEGORIES = (None, "load", 'say "hi"\n')
PAYLOADS = (None, 0, -3, 2**62, 0.5, 1e-300, 12.0)

_said = {
    "name": st.sampled_from(NAMES),
    "domain": st.sampled_from(DOMAINS),
    "category": st.sampled_from(CATEGORIES),
    "payload": st.sampled_from(PAYLOADS),
    "color": st.sampled_from(list(COLORS)),
}
_steps = st.one_of(
    st.fixed_dictionaries(
        {"do": st.sampled_from(["push", "push", "annotate", "registered", "start", "mark"]), **_said}
    ),
    st.fixed_dictionaries({"do": st.just("pop"), "domain": st.sampled_from(DOMAINS)}),
    st.fixed_dictionaries({"do": st.just("end"), "which": st.integers(0, 3)}),
    st.fixed_dictionaries({"do": st.just("enter"), "name": st.sampled_from([n for n in NAMES if n])}),
    st.fixed_dictionaries({"do": st.just("leave")}),
    st.fixed_dictionaries({"do": st.just("launch")}),
    st.fixed_dictionaries({"do": st.just("launch")}),
)
PROGRAMS = st.lists(st.tuples(st.integers(0, 2), _steps), min_size=1, max_size=40)


class Worker:
    """A thread that does one thing after another, each when it is told to."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self.tid = self(threading.get_native_id)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                self._done.put((work(), None))
            except BaseException as e:
                self._done.put((None, e))

    def __call__(self, work: Callable[[], Any]) -> Any:
        self._work.put(work)
        value, error = self._done.get()
        if error is not None:
            raise error
        return value

    def end(self) -> None:
        self._work.put(None)
        self._thread.join()


class Running:
    """One program, and the truth of it."""

    def __init__(self, level: str) -> None:
        self.truth = Truth(level)
        self._device = SimDevice()
        self._ranges: list[tuple[int, Any]] = []  # number in the truth, handle
        self._numbers = 0
        self._regions: dict[int, list[Any]] = {}
        self._launches = 0

    def do(self, thread: int, step: dict[str, Any]) -> None:
        getattr(self, f"_{step['do']}")(thread, **{k: v for k, v in step.items() if k != "do"})

    def _entered(self, thread: int, said: dict[str, Any]) -> None:
        metadata = attributes(said["category"], said["payload"], said["color"])
        self.truth.enter(thread, said["name"], 1, said["domain"] or "", metadata)

    def _push(self, thread: int, **said: Any) -> None:
        message = said["name"]
        nvtx.push_range(message, **{k: said[k] for k in ("color", "domain", "category", "payload")})
        self._entered(thread, said)

    def _annotate(self, thread: int, **said: Any) -> None:
        nvtx.annotate(said["name"], said["color"], said["domain"], said["category"], said["payload"]).__enter__()
        self._entered(thread, said)

    def _registered(self, thread: int, **said: Any) -> None:
        domain = nvtx.get_domain(said["domain"])
        attributes_ = domain.get_event_attributes(said["name"], said["color"], said["category"], said["payload"])
        domain.push_range(attributes_)
        self._entered(thread, said)

    def _pop(self, thread: int, domain: str | None) -> None:
        nvtx.pop_range(domain)
        self.truth.leave(thread, 1, domain or "")

    def _start(self, thread: int, **said: Any) -> None:
        handle = nvtx.start_range(said["name"], said["color"], said["domain"], said["category"], said["payload"])
        self._numbers += 1
        self._ranges.append((self._numbers, handle))
        metadata = attributes(said["category"], said["payload"], said["color"])
        self.truth.start(self._numbers, said["name"], said["domain"] or "", metadata, thread)

    def _end(self, thread: int, which: int) -> None:
        if which < len(self._ranges):
            number, handle = self._ranges.pop(which)
            nvtx.end_range(handle)
            self.truth.end(number)

    def _mark(self, thread: int, **said: Any) -> None:
        nvtx.mark(said["name"], said["color"], said["domain"], said["category"], said["payload"])
        metadata = attributes(said["category"], said["payload"], said["color"])
        self.truth.mark(said["name"], said["domain"] or "", metadata, thread)

    def _enter(self, thread: int, name: str) -> None:
        region = cuptiprof.region(name)
        region.__enter__()
        self._regions.setdefault(thread, []).append(region)
        self.truth.enter(thread, name, 0)

    def _leave(self, thread: int) -> None:
        if self._regions.get(thread):
            self._regions[thread].pop().__exit__(None, None, None)
            self.truth.leave(thread, 0)

    def _launch(self, thread: int) -> None:
        self._launches += 1
        name = f"kernel_{self._launches}"
        self._device.launch(name)
        self.truth.launch(thread, name)


def run(program: list[tuple[int, dict[str, Any]]], level: str, workers: list[Worker]) -> tuple[Result, Truth]:
    running = Running(level)
    with cuptiprof.profile(device="sim", sources={"nvtx": level}) as prof:
        for thread, step in program:
            workers[thread](lambda thread=thread, step=step: running.do(thread, step))
    running.truth.finish()
    for thread, domain in [(t, d) for t in range(len(workers)) for d in DOMAINS]:
        for _ in program:  # what it left open is not the next one's
            workers[thread](lambda domain=domain: nvtx.pop_range(domain))
    return prof.result(), running.truth


def compare(result: Result, truth: Truth, workers: list[Worker]) -> None:
    threads = {w.tid: i for i, w in enumerate(workers)}
    k = result.kernels
    found = {
        str(k["name"][i]): (k["region"][i], k["nvtx"][i], ",".join(sorted(ranges(k["nvtx_start_end"][i]))), threads[k["thread"][i]])
        for i in range(len(k))
    }  # fmt: skip
    assert found == truth.kernels, (found, truth.kernels)
    r = result.regions
    regions = Counter(
        (r["name"][i], r["path"][i], int(r["source"][i]), r["domain"][i], sorted_json(r["metadata"][i]), int(r["depth"][i]),
         threads[r["thread"][i]], int(r["is_open"][i]))
        for i in range(len(r))
    )  # fmt: skip
    assert regions == truth.regions, (regions - truth.regions, truth.regions - regions)
    m = result.markers
    markers = Counter(
        (m["name"][i], m["domain"][i], sorted_json(m["metadata"][i]), threads[m["thread"][i]], int(m["is_open"][i])) for i in range(len(m))
    )  # fmt: skip
    assert markers == truth.markers, (markers - truth.markers, truth.markers - markers)
    assert not any(result.losses.values()), result.losses


def ranges(text: str) -> list[str]:
    """At commas that are not escaped."""
    out, escaped = [""], False
    for c in text:
        if c == "," and not escaped:
            out.append("")
            continue
        out[-1] += c
        escaped = c == "\\" and not escaped
    return out


def sorted_json(text: str) -> str:
    return json.dumps(json.loads(text), sort_keys=True) if text else ""


def main(examples: int) -> None:
    workers = [Worker() for _ in range(3)]

    @settings(max_examples=examples, deadline=None, database=None, derandomize=True, phases=[Phase.generate, Phase.shrink],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(PROGRAMS, st.sampled_from(["full", "launch"]))
    def check(program: list[tuple[int, dict[str, Any]]], level: str) -> None:
        result, truth = run(program, level, workers)
        compare(result, truth, workers)

    try:
        check()
    finally:
        for w in workers:
            w.end()
    print(f"{examples} programs")


if __name__ == "__main__":
    main(int(sys.argv[1]))
