"""Property test: any program of regions and launches on any number of threads."""

from __future__ import annotations

import threading
from typing import Any

from gpu import ScenarioGpu
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cuptiprof

pytest_plugins = ["behaviour_fixtures"]

names = st.sampled_from(["a", "b", "c/d", "e\\f", "ü"])
program = st.recursive(st.just("launch"), lambda inner: st.tuples(names, st.lists(inner, max_size=4)), max_leaves=20)
programs = st.lists(st.lists(program, max_size=4), min_size=1, max_size=4)


def escape(name: str) -> str:
    return name.replace("\\", "\\\\").replace("/", "\\/")


def expected(steps: list[Any], path: str, out: list[str]) -> None:
    for step in steps:
        if step == "launch":
            out.append(path)
        else:
            expected(step[1], (path + "/" if path else "") + escape(step[0]), out)


def run(steps: list[Any], gpu: ScenarioGpu, thread: int) -> None:
    for step in steps:
        if step == "launch":
            gpu.launch(f"t{thread}")
        else:
            with cuptiprof.region(step[0]):
                run(step[1], gpu, thread)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(programs=programs)
def test_rings_and_regions(gpu: ScenarioGpu, programs: list[list[Any]]) -> None:
    """Every thread's launches get the paths of its own program, in order; every region has its row."""
    with cuptiprof.profile(device=gpu.device, budget="16 MB") as prof:

        def work(i: int) -> None:
            with cuptiprof.region(f"thread{i}"):
                run(programs[i], gpu, i)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(programs))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    r = prof.result()
    assert not r.losses
    kernels = r.kernels.sorted_by("correlation_id")
    for i, steps in enumerate(programs):
        want: list[str] = []
        expected(steps, f"thread{i}", want)
        mine = kernels.where(kernels["name"] == f"t{i}")
        assert list(mine["region"]) == want
    assert not r.regions["is_open"].any()
    instances = {row["instance"]: row for row in r.regions.rows()}
    for row in instances.values():
        if row["parent"]:
            parent = instances[row["parent"]]
            assert parent["depth"] == row["depth"] - 1
            assert parent["start"] <= row["start"] <= row["end"] <= parent["end"]
