"""Programs made from a seed, played on GPUs of the simplest kind: what each thing waited for is known as it happens."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from report_results import make_result

from cuptiprof.data.enums import MEMORY_KINDS, SYNC_KINDS, code_of
from cuptiprof.data.result import Result

_TYPES = {
    text: code_of(SYNC_KINDS, text) for text in ("Event Sync", "Stream Sync", "Context Sync", "Stream Wait Event")
}
_PAGEABLE = code_of(MEMORY_KINDS, "Pageable")
NONE = 0xFFFFFFFF


@dataclass
class Work:
    stream: int
    start: int
    end: int
    thread: int
    called: int
    before: Work | None = None  # the one before on the stream
    event: Work | None = None  # the last to end of what the stream waited for


@dataclass
class Wait:
    thread: int
    start: int
    end: int
    work: Work
    release: int


@dataclass
class Program:
    """Threads that take turns by their clocks, streams 7, 8, 9 of one GPU."""

    seed: int
    calls: int = 60
    threads: int = 2
    numbered: bool = True  # synchronisations say by number which record of an event they wait for
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    works: list[Work] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.tables = {name: [] for name in ("kernels", "memcpys", "api_calls", "synchronizations", "cuda_events")}
        self.taken: set[int] = set()
        self.last: dict[int, Work] = {}
        self.pending: dict[int, list[Work]] = {}
        self.events: dict[int, tuple[Work | None, int]] = {}
        clocks = {70 + i: 100 * i for i in range(self.threads)}
        for _ in range(self.calls):
            thread = min(clocks, key=lambda t: clocks[t])
            clocks[thread] = self._alone(self._step(thread, clocks[thread]) + self.random.randint(0, 40))

    def _alone(self, time: int) -> int:
        """A time at which no other call begins and no other work ends: what comes first is always known."""
        while time in self.taken:
            time += 1
        self.taken.add(time)
        return time

    def result(self) -> Result:
        return make_result({name: rows for name, rows in self.tables.items() if rows})

    def _call(self, name: str, thread: int, start: int, end: int) -> int:
        rows = self.tables["api_calls"]
        rows.append({"name": name, "thread": thread, "start": start, "end": end, "correlation_id": len(rows) + 1})
        return len(rows)

    def _step(self, thread: int, now: int) -> int:
        do = self.random.choices(
            (self._launch, self._record, self._stream_wait, self._synchronise, self._copy), (10, 2, 2, 2, 2)
        )[0]
        return do(thread, now)

    def _work(self, thread: int, now: int, correlation: int, table: str, **more: Any) -> Work:
        stream = self.random.choice((7, 8, 9))
        waited = self.pending.pop(stream, [])
        event = max(waited, key=lambda w: w.end, default=None)
        before = self.last.get(stream)
        start = max(
            [now + self.random.randint(1, 30), *(w.end + self.random.randint(0, 9) for w in (before, event) if w)]
        )
        end = self._alone(start + self.random.randint(1, 200))
        work = Work(stream, start, end, thread, now, before, event)
        self.works.append(work)
        self.last[stream] = work
        self.tables[table].append(
            {"start": work.start, "end": work.end, "stream": stream, "correlation_id": correlation, **more}
        )
        return work

    def _launch(self, thread: int, now: int) -> int:
        end = now + self.random.randint(1, 20)
        self._work(thread, now, self._call("cudaLaunchKernel", thread, now, end), "kernels", name=f"k{len(self.works)}")
        return end

    def _copy(self, thread: int, now: int) -> int:
        call = self._call("cudaMemcpyAsync", thread, now, 0)
        pageable = self.random.random() < 0.7
        work = self._work(thread, now, call, "memcpys", copy_kind=1, src_kind=_PAGEABLE if pageable else 2, dst_kind=3)
        end = work.end + self.random.randint(1, 9) if pageable else now + self.random.randint(1, 20)
        self.tables["api_calls"][call - 1]["end"] = end
        if pageable:
            self.waits.append(Wait(thread, now, end, work, work.end))
        return end

    def _record(self, thread: int, now: int) -> int:
        event, stream = self.random.randint(1, 3), self.random.choice((7, 8, 9))
        self.events[event] = self.last.get(stream), len(self.tables["cuda_events"]) + 1
        end = now + self.random.randint(1, 5)
        call = self._call("cudaEventRecord", thread, now, end)
        number = len(self.tables["cuda_events"]) + 1 if self.numbered else 0
        self.tables["cuda_events"].append(
            {"event": event, "stream": stream, "correlation_id": call, "event_sync_id": number}
        )
        return end

    def _stream_wait(self, thread: int, now: int) -> int:
        event, stream = self.random.choice(list(self.events) or [0]), self.random.choice((7, 8, 9))
        if not event:
            return now
        work, number = self.events[event]
        if work is not None:
            self.pending.setdefault(stream, []).append(work)
        end = now + self.random.randint(1, 5)
        self._sync("cudaStreamWaitEvent", "Stream Wait Event", thread, now, end, stream, event, number)
        return end

    def _synchronise(self, thread: int, now: int) -> int:
        kind = self.random.choice(("Event Sync", "Stream Sync", "Context Sync"))
        stream, event, number = NONE, NONE, 0
        if kind == "Event Sync":
            if not self.events:
                return now
            event = self.random.choice(list(self.events))
            work, number = self.events[event]
        elif kind == "Stream Sync":
            stream = self.random.choice((7, 8, 9))
            work = self.last.get(stream)
        else:
            work = max(self.last.values(), key=lambda w: w.end, default=None)
        release = max(now, work.end) if work else now
        end = release + self.random.randint(1, 9)
        name = {"Event Sync": "cudaEventSynchronize", "Stream Sync": "cudaStreamSynchronize"}.get(
            kind, "cudaDeviceSynchronize"
        )
        self._sync(name, kind, thread, now, end, stream, event, number)
        if work is not None and work.end > now:
            self.waits.append(Wait(thread, now, end, work, release))
        return end

    def _sync(
        self, name: str, kind: str, thread: int, now: int, end: int, stream: int, event: int, number: int
    ) -> None:
        call = self._call(name, thread, now, end)
        self.tables["synchronizations"].append({
            "type": _TYPES[kind], "start": now, "end": end, "correlation_id": call, "stream": stream, "event": event,
            "event_sync_id": number if self.numbered else 0,
        })  # fmt: skip
