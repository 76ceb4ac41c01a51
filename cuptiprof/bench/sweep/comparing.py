"""``compare(..., over=...)``: functions against each other at each point of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cuptiprof.bench.case import Case
from cuptiprof.bench.environment import environment
from cuptiprof.bench.inputs import Function, bind, parameters_of
from cuptiprof.bench.open_gpu import open_gpu
from cuptiprof.bench.results.points import Params, make_points, params_key
from cuptiprof.bench.results.store import Results
from cuptiprof.bench.sweep.benchmark import Benchmark
from cuptiprof.bench.sweep.running import run, tasks_of
from cuptiprof.device.devices import Device
from cuptiprof.errors import BenchError

IMPL = "impl"
"""The parameter that says which of the functions a row is of."""


def compare_over(
    cases: Mapping[str, Case],
    over: Params,
    inputs: Function | None,
    name: str,
    device: str | Device | None,
    options: Mapping[str, Any],
) -> Results:
    """See :func:`cuptiprof.compare`.

    Raises:
        BenchError: a parameter called :data:`IMPL`, or as ``@benchmark``.
        DeviceError: there is no such device.
    """
    args_of = _Inputs(inputs) if inputs is not None else None

    def prepare(*, impl: str, **point: Any) -> Any:
        case = cases[impl]
        if args_of is None:
            return case.function(**point)
        args = args_of(point)
        check = bind(case.check, args, {}) if callable(case.check) else case.check
        return Case(bind(case.function, args, {}), case.setup, check)

    points = [p.values for p in make_points(over)]
    if any(IMPL in p for p in points):
        raise BenchError(f"a parameter of over= cannot be called {IMPL!r}: that is which function a row is of")
    if args_of is None and any(c.setup is not None or c.check is not None for c in cases.values()):
        raise BenchError("functions that prepare a point return Case(f, setup=, check=)", hint="or give inputs=")
    params = [{**p, IMPL: impl} for p in points for impl in cases]
    benchmark = Benchmark(prepare, params, name, options, IMPL)
    with open_gpu(device) as gpu:
        opened, surroundings = gpu.device or "host", environment(gpu)
    return Results(tuple(run(tasks_of([benchmark]), device=opened)), surroundings)


class _Inputs:
    """The arguments of a point, the same objects for all functions; those of the point before are let go."""

    def __init__(self, make: Function) -> None:
        self._make = make
        self._key = ""
        self._args: tuple[Any, ...] = ()

    def __call__(self, point: Mapping[str, Any]) -> tuple[Any, ...]:
        key = params_key({n: repr(v) for n, v in point.items()})
        if key != self._key:
            self._args = ()
            names, takes_any = parameters_of(self._make)
            made = self._make(**{n: v for n, v in point.items() if takes_any or n in names})
            self._key, self._args = key, made if isinstance(made, tuple) else (made,)
        return self._args
