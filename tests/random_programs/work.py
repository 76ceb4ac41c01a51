"""Runs the workers of a burst, and says what they launched."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterable

import cuptiprof
from cuptiprof.sim.sim_device import Flag, Op, SimDevice

from .programs import Launches, Node, Worker

GRAPH, GRAPH_STREAM, GRAPH_KERNELS, GRAPH_KERNEL = 7, 90, 2, "graph_node"


class _ThreadEnds(Exception):
    """A region was entered for good."""


class Gate:
    """Workers arrive inside their regions, and go on when it is opened."""

    def __init__(self, workers: int) -> None:
        self._arrived = threading.Semaphore(0)
        self._open = threading.Event()
        self._workers = workers

    def arrive(self) -> None:
        if not self._open.is_set():
            self._arrived.release()
            assert self._open.wait(60)

    def all_arrived(self) -> None:
        for _ in range(self._workers):
            assert self._arrived.acquire(timeout=60)

    def open(self) -> None:
        self._open.set()


class Work:
    """What one worker does; `launched` afterwards: kernel name -> launches, and its copies and graph launches."""

    def __init__(self, sim: SimDevice, prefix: str, worker: Worker, device: int, gate: Gate | None) -> None:
        self.worker = worker
        self.launched: Counter[str] = Counter()
        self.copies = 0
        self.graphs = 0
        self.error: BaseException | None = None
        self._sim, self._prefix, self._device, self._gate = sim, prefix, device, gate

    def _launch(self, node: Launches, path: tuple[str, ...]) -> None:
        if self._gate:
            self._gate.arrive()
        if node.kind == "copy":
            self._sim.call(Op.MEMCPY, bytes=4096, copy_kind=1, flags=Flag.ASYNC, device=self._device)
            self.copies += 1
        elif node.kind == "graph" and self._device == 0:
            self._sim.call(Op.GRAPH_LAUNCH, graph_id=GRAPH, stream=node.stream)
            self.graphs += 1
        else:
            name = f"{self._prefix}.{self.worker.label}.{'-'.join(path)}"
            self._sim.launch(name, count=node.count, stream=node.stream, device=self._device, duration_ns=300)
            self.launched[name] += node.count

    def walk(self, nodes: Iterable[Node], path: tuple[str, ...] = ()) -> None:
        for node in nodes:
            if isinstance(node, Launches):
                self._launch(node, path)
            elif node.dies:
                cuptiprof.region(node.name).__enter__()
                self.walk(node.body, (*path, node.name))
                raise _ThreadEnds
            else:
                with cuptiprof.region(node.name):
                    self.walk(node.body, (*path, node.name))

    async def walk_as_task(self, nodes: Iterable[Node], path: tuple[str, ...] = ()) -> None:
        for node in nodes:
            if isinstance(node, Launches):
                self._launch(node, path)
                await asyncio.sleep(0)
            else:
                with cuptiprof.region(node.name):
                    await self.walk_as_task(node.body, (*path, node.name))

    async def _tasks(self) -> None:
        await asyncio.gather(*(self.walk_as_task([node]) for node in self.worker.nodes))

    def run(self, loop: asyncio.AbstractEventLoop) -> None:
        """The whole of it, in the calling thread."""
        try:
            if self._gate and self.worker.kind in ("tasks", "loop"):
                self._gate.arrive()  # no loop may wait
            if self.worker.kind == "tasks":
                asyncio.run(self._tasks())
            elif self.worker.kind == "loop":
                asyncio.run_coroutine_threadsafe(self._tasks(), loop).result(60)
            else:
                self.walk(self.worker.nodes)
        except _ThreadEnds:
            pass
        except BaseException as error:
            self.error = error
        finally:
            if self._gate:
                self._gate.arrive()


class Loop:
    """An event loop in a thread of its own, as servers have."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()
