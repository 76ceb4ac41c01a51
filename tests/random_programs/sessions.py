"""Runs one session of a program, keeping book of what it must have collected."""

from __future__ import annotations

import contextlib
import gc
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cuptiprof
from cuptiprof.device.devices import SimulatedDevice
from cuptiprof.errors import DeviceError, SessionError
from cuptiprof.session.schedule import Action, Schedule
from cuptiprof.sim.sim_device import Op

from . import surroundings
from .expected import Expected, check
from .programs import Burst, SessionPlan
from .work import GRAPH, GRAPH_KERNEL, GRAPH_KERNELS, GRAPH_STREAM, Gate, Work

if TYPE_CHECKING:
    from .runner import World

METRICS = ["inst_executed", "ipc"]


class Run:
    """One session of a plan."""

    def __init__(self, world: World, plan: SessionPlan, number: int) -> None:
        self.world, self.plan, self.number = world, plan, number
        self.device: Any = f"sim:{plan.chip}"
        if plan.shared_device or plan.devices > 1 or plan.virtual_clock:
            self.device = SimulatedDevice(plan.chip, devices=plan.devices, virtual_clock=plan.virtual_clock)
        self.schedule: Schedule | None = None
        if plan.cycle:
            wait, warmup, active = plan.cycle
            self.schedule = cuptiprof.schedule(wait=wait, warmup=warmup, active=active)
        self.expected = Expected()  # of the result that is being collected
        self.step = 0
        self.paused = False
        self.window = not plan.window
        self.cycles: list[tuple[cuptiprof.Result, Expected]] = []
        arguments: dict[str, Any] = {}
        if plan.counted:
            arguments = {"metrics": METRICS, "strategy": plan.counted}
        if plan.keep == "spill":
            arguments["spill_dir"] = world.folder / f"spill{number}"
        self.prof = cuptiprof.profile(
            device=self.device,
            activities=plan.activities,
            kernels=plan.kernels,
            launch_skip=plan.launch_skip,
            launch_count=plan.launch_count,
            keep=plan.keep,
            budget="16 MB",
            schedule=self.schedule,
            profile_from_start=not plan.window,
            on_ready=self._ready if self.schedule else None,
            **arguments,
        )

    def _ready(self, prof: cuptiprof.profile) -> None:
        self.cycles.append((prof.result(), self.expected))
        self.expected = Expected()

    def _action(self) -> Action:
        return self.schedule(self.step) if self.schedule else Action.RECORD

    def collects(self) -> bool:
        """The model's word: what is launched now is kept."""
        return not self.paused and self.window and self._action() in (Action.RECORD, Action.RECORD_AND_SAVE)

    def state(self) -> str:
        if self.paused:
            return "paused"
        if self.plan.window:
            return "running" if self.window else "armed"
        if self.schedule and self._action() is Action.NONE:
            return "armed" if self.step <= self.plan.cycle[0] and not self.cycles else "paused"  # type: ignore[index]
        return "running"

    def begin(self, beside: Burst) -> None:
        if not isinstance(self.device, str):
            self.device.open().close()  # what follows is launched on the machine of the session
        else:
            SimulatedDevice(self.plan.chip)
        self.capture()
        self.burst(beside, start=True)

    def capture(self) -> None:
        sim = self.world.sim
        sim.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=GRAPH, stream=GRAPH_STREAM)
        sim.launch(GRAPH_KERNEL, stream=GRAPH_STREAM, count=GRAPH_KERNELS)
        sim.call(Op.GRAPH_END_CAPTURE, graph_id=GRAPH, stream=GRAPH_STREAM)

    def burst(self, burst: Burst, start: bool = False) -> None:
        """Runs it; with controls, or the start of the session, beside it."""
        prefix = f"s{self.number}b{self.world.next_burst()}"
        gate = Gate(len(burst.workers)) if burst.controls or start else None
        devices = range(self.plan.devices)
        works = [Work(self.world.sim, prefix, w, devices[i % len(devices)], gate) for i, w in enumerate(burst.workers)]
        running = [
            threading.Thread(target=w.run, args=(self.world.loop.loop,))
            for w in works
            if gate or w.worker.kind != "main"
        ]
        before = self.expected
        for t in running:
            t.start()
        try:
            if gate is None:
                for w in works:
                    if w.worker.kind == "main":
                        w.run(self.world.loop.loop)
            else:
                gate.all_arrived()
                gate.open()
                if start:
                    self.prof.start()
                for control in burst.controls:
                    self.control(control)
        finally:
            for t in running:
                t.join()
        for w in works:
            if w.error:
                raise w.error
            self.world.launched(w)
            if gate is not None:
                for e in {id(before): before, id(self.expected): self.expected}.values():
                    e.add(w, False)
            elif self.collects():
                self.expected.add(w, True)

    def control(self, what: str) -> None:
        handler = getattr(self, f"do_{what}", None)
        if handler is None:
            raise AssertionError(f"no such step: {what}")
        handler()
        state = self.prof.state
        assert state == self.state(), f"{state} after {what}, {self.state()} expected"

    def do_pause(self) -> None:
        if self.state() == "running" or (self.plan.window and not self.paused):
            self.prof.pause()
            self.paused = True
        else:
            self.refused(self.prof.pause)

    def do_resume(self) -> None:
        if self.paused:
            self.prof.resume()
            self.paused = False

    def do_step(self) -> None:
        self.prof.step()
        was = self._action()
        self.step += 1
        if self.schedule:
            if self._action() is not Action.NONE or was is not Action.NONE:
                self.paused = False  # the schedule goes on
            if was is Action.WARMUP:
                self.expected = Expected(maybe=self.expected.maybe)

    def do_second(self) -> None:
        self.refused(cuptiprof.profile(device=self.device).start)

    def do_other_device(self) -> None:
        other = "A100" if self.plan.chip == "H100" else "H100"
        with contextlib.suppress(DeviceError):
            cuptiprof.profile(device=f"sim:{other}").start()
            raise AssertionError("two devices at once")

    def do_reset(self) -> None:
        with contextlib.suppress(DeviceError):
            self.world.sim.reset()
            raise AssertionError("reset under a session")

    def do_unload(self) -> None:
        self.world.sim.call(Op.MODULE_UNLOAD)
        self.capture()  # its kernels are those of the module that is loaded now

    def do_sync(self) -> None:
        self.world.sim.synchronize()

    def do_collect_garbage(self) -> None:
        gc.collect()

    def do_profiler_start(self) -> None:
        self.world.sim.call(Op.PROFILER_START)
        self.window = True

    def do_profiler_stop(self) -> None:
        self.world.sim.call(Op.PROFILER_STOP)
        self.window = False

    def refused(self, call: Any) -> None:
        try:
            call()
        except SessionError:
            return
        raise AssertionError(f"{call} was not refused")

    def run(self, beside: Burst) -> None:
        try:
            self.begin(beside)
            for step in self.plan.steps:
                self.world.check_truth()
                if isinstance(step, Burst):
                    self.burst(step)
                else:
                    self.control(step)
            self.end()
        except BaseException:
            with contextlib.suppress(Exception):
                self.prof.stop()  # the next program shall not pay for it
            raise

    def end(self) -> None:
        if self.plan.end == "drop":
            del self.prof
            gc.collect()
            assert surroundings.settles(surroundings.spilling_threads, 0, patience=60), "a dropped session still spills"
            return
        if self.plan.end == "finalize":
            try:
                result = self.prof.detach(finalize=True)
            except SessionError as error:
                if "CUDA graphs" not in str(error):  # refused from the first graph of the process on
                    raise
                result = self.prof.result()
        else:
            result = self.prof.stop() if self.plan.end == "stop" else self.prof.detach()
        assert self.prof.state == "stopped"
        assert result is self.prof.result()
        self.refused(self.prof.stop)
        if not self.schedule:
            self.check(result, self.expected)
        for cycle, expected in self.cycles:
            self.check(cycle, expected)

    def check(self, result: cuptiprof.Result, expected: Expected) -> None:
        check(result, expected, self.plan)
        if self.world.number % 8 == 0:
            saved: Path = self.world.folder / f"r{self.number}-{id(result)}.cuprof"
            result.save(saved)
            again = cuptiprof.open(saved)
            check(again, expected, self.plan)
            assert dict(again.losses) == dict(result.losses)
            result.summary(), result.regions_report()
