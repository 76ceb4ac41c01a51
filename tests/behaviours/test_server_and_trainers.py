"""A program such as people run: a server on asyncio in a background thread, a pool, a queue, and two trainers. All of it knows by
itself what it launched where; every kernel must be there."""

from __future__ import annotations

import asyncio
import queue
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from gpu import ScenarioGpu
from scenarios import collected

import cuptiprof

pytest_plugins = ["behaviour_fixtures"]

REQUESTS, STEPS = 60, 40


class Truth:
    """Launches, and notes under which region each must appear."""

    def __init__(self, gpu: ScenarioGpu) -> None:
        self._gpu = gpu
        self._lock = threading.Lock()
        self.regions: dict[str, str] = {}

    def launch(self, region: str) -> None:
        with self._lock:
            name = f"k{len(self.regions)}"
            self.regions[name] = region
        self._gpu.launch(name)


async def handle(number: int, truth: Truth, pool: ThreadPoolExecutor) -> None:
    dice = random.Random(number)
    with cuptiprof.region(f"request{number % 7}"):
        path = f"request{number % 7}"
        for _ in range(3):
            truth.launch(path)
            await asyncio.sleep(dice.random() / 1000)
            with cuptiprof.region("decode"):
                truth.launch(f"{path}/decode")
                await asyncio.get_running_loop().run_in_executor(pool, truth.launch, f"{path}/decode")
                await asyncio.to_thread(truth.launch, f"{path}/decode")
    truth.launch("")


def serve(truth: Truth) -> None:
    async def server() -> None:
        with ThreadPoolExecutor(3) as pool:
            await asyncio.gather(*(handle(i, truth, pool) for i in range(REQUESTS)))

    asyncio.run(server())


def train(name: str, truth: Truth, jobs: queue.SimpleQueue[Any]) -> None:
    for step in range(STEPS):
        with cuptiprof.region(name, step=step):
            with cuptiprof.region("fwd"):
                truth.launch(f"{name}/fwd")
            with cuptiprof.region("bwd"):
                done = threading.Event()
                jobs.put((cuptiprof.carry(), f"{name}/bwd", done))
                truth.launch(f"{name}/bwd")
                done.wait()
        truth.launch("")


def take_out(truth: Truth, jobs: queue.SimpleQueue[Any]) -> None:
    while (job := jobs.get()) is not None:
        carried, region, done = job
        with carried:
            truth.launch(region)
            with cuptiprof.region("reduce"):
                truth.launch(f"{region}/reduce")
        truth.launch("")
        done.set()


def test_each_kernel_is_whose_it_is(gpu: ScenarioGpu) -> None:
    truth = Truth(gpu)
    jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
    helpers = [threading.Thread(target=take_out, args=(truth, jobs)) for _ in range(2)]
    for helper in helpers:
        helper.start()

    def body() -> None:
        threads = [threading.Thread(target=serve, args=(truth,))]
        threads += [threading.Thread(target=train, args=(name, truth, jobs)) for name in ("trainer_a", "trainer_b")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for _ in helpers:
            jobs.put(None)
        for helper in helpers:
            helper.join()

    kernels = collected(gpu, body).kernels
    found = dict(zip(kernels["name"], kernels["region"], strict=True))
    assert len(kernels) == len(truth.regions) == REQUESTS * 13 + STEPS * 2 * 6
    assert found == truth.regions
