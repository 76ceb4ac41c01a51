"""What a program is, and one made from a seed. Nothing here runs anything."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

CHIPS = ("H100", "A100")
REGIONS = ("fwd", "bwd", "opt", "io")
WITHOUT_GRAPHS = 150
"""Programs before this number launch no graph: detach(finalize=True) is refused from the first one on."""


@dataclass(frozen=True)
class Launches:
    count: int
    stream: int = 0
    kind: str = "kernel"  # kernel, copy, graph: what is launched


@dataclass(frozen=True)
class Region:
    name: str
    body: tuple[Node, ...]
    dies: bool = False  # entered and never left: the thread ends in it


Node = Launches | Region


@dataclass(frozen=True)
class Worker:
    """One thread of a burst. kind: thread; tasks (an event loop, each node a task); loop (tasks given to a loop that runs in
    a thread of its own); main (the thread that controls the session)."""

    label: str
    kind: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Burst:
    """Threads at work. `controls`: what is done to the session while every worker is inside its regions."""

    workers: tuple[Worker, ...]
    controls: tuple[str, ...] = ()


@dataclass(frozen=True)
class SessionPlan:
    chip: str
    devices: int
    virtual_clock: bool
    shared_device: bool  # opened by name each time, else one Device object for the program
    activities: tuple[str, ...]
    kernels: str | None = None
    launch_skip: int = 0
    launch_count: int | None = None
    keep: str = "latest"
    counted: str | None = None  # strategy
    cycle: tuple[int, int, int] | None = None  # wait, warmup, active of a repeating schedule
    window: bool = False  # profile_from_start=False
    end: str = "stop"  # stop, detach, finalize, drop
    steps: tuple[Burst | str, ...] = ()


@dataclass(frozen=True)
class Program:
    seed: str
    plans: tuple[SessionPlan, ...]
    between: tuple[Burst, ...] = field(default=())


class Maker:
    def __init__(self, seed: str, graphs: bool) -> None:
        self.seed = seed
        self.graphs = graphs
        self.r = random.Random(seed)

    def chance(self, p: float) -> bool:
        return self.r.random() < p

    def nodes(self, label: str, depth: int, dying: bool) -> tuple[Node, ...]:
        r = self.r
        out: list[Node] = []
        for _ in range(r.randint(1, 3)):
            if depth and self.chance(0.6):
                body = self.nodes(label, depth - 1, dying)
                out.append(Region(f"{label}.{r.choice(REGIONS)}", body, dying and self.chance(0.2)))
            else:
                kind = r.choices(("kernel", "copy", "graph"), (12, 2, int(self.graphs)))[0]
                out.append(Launches(r.choice((1, 1, 2, 5, 40)), r.choice((0, 0, 20, 21)), kind))
        return tuple(out)

    def burst(self, controls: tuple[str, ...] = ()) -> Burst:
        r = self.r
        workers = []
        for i in range(r.choice((1, 1, 2, 3, 4))):
            kind = r.choices(("thread", "main", "tasks", "loop"), (6, 3 if i == 0 and not controls else 0, 2, 1))[0]
            workers.append(Worker(f"t{i}", kind, self.nodes(f"t{i}", r.randint(0, 3), kind == "thread")))
        return Burst(tuple(workers), controls)

    def steps(self, plan_kind: str) -> tuple[Burst | str, ...]:
        r = self.r
        out: list[Burst | str] = []
        for _ in range(r.randint(1, 6)):
            what = r.random()
            if what < 0.55:
                out.append(self.burst())
            elif what < 0.7:
                out.append(self.burst(tuple(r.choice((("pause", "resume"), ("step",), ("pause", "resume", "step"))))))
            elif what < 0.8:
                out.append(r.choice(("pause", "resume")))
            elif what < 0.9 or plan_kind == "cycle":
                out.append("step")
            else:
                out.append(r.choice(("second", "other_device", "reset", "unload", "sync", "collect_garbage")))
            if plan_kind == "window" and self.chance(0.5):
                out.append(r.choice(("profiler_start", "profiler_stop")))
        return tuple(out)

    def plan(self) -> SessionPlan:
        r = self.r
        kind = r.choices(("plain", "cycle", "window", "filtered", "counted", "spill"), (10, 3, 2, 4, 1, 1))[0]
        activities = r.choice((("kernel",), ("kernel", "memcpy"), ("kernel", "runtime", "memcpy", "sync")))
        ends = ("stop", "detach", "finalize", "drop")
        return SessionPlan(
            chip=r.choice(CHIPS),
            devices=r.choice((1, 1, 2)),
            virtual_clock=self.chance(0.3),
            shared_device=self.chance(0.5),
            activities=activities,
            kernels=r.choice(("*.t0.*", "*.t1.*", "nothing*", "regex:t[01]")) if kind == "filtered" else None,
            launch_skip=r.choice((0, 0, 3)) if kind == "filtered" else 0,
            launch_count=r.choice((None, None, 7)) if kind == "filtered" else None,
            keep="spill" if kind == "spill" else r.choice(("latest", "first")),
            counted=r.choice(("replay", "iterate")) if kind == "counted" else None,
            cycle=(r.randint(0, 1), r.randint(0, 1), r.randint(1, 2)) if kind == "cycle" else None,
            window=kind == "window",
            end=r.choices(ends, (10, 2, 1, 1))[0],
            steps=self.steps(kind),
        )

    def program(self) -> Program:
        plans = tuple(self.plan() for _ in range(self.r.choice((1, 1, 2, 3))))
        between = tuple(self.burst() for _ in plans)
        return Program(self.seed, plans, between)


def make(seed: int, number: int) -> Program:
    """The program of this number in the series of a seed: always the same."""
    return Maker(f"{seed}-{number}", graphs=number >= WITHOUT_GRAPHS).program()
