"""The options of the harness: one list of them for all its entrances."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cuptiprof
from cuptiprof.bench import Options, SweepOptions, run_benchmarks
from cuptiprof.errors import BenchError

ROOT = Path(__file__).resolve().parents[2]


def test_points_have_the_same_options() -> None:
    assert Options.__optional_keys__ == SweepOptions.__optional_keys__ and not Options.__required_keys__


def test_the_list_of_the_documentation_is_complete() -> None:
    text = (ROOT / "docs" / "bench.md").read_text().partition("### Options")[2].partition(" are the same")[0]
    assert set(text.replace("`", " ").replace(",", " ").split()) == Options.__optional_keys__


@pytest.mark.parametrize(
    "entrance",
    [
        lambda **o: cuptiprof.bench(lambda: None, device="host", **o),
        lambda **o: cuptiprof.compare({"a": lambda: None, "b": lambda: None}, device="host", **o),
        lambda **o: cuptiprof.benchmark(**o)(lambda: None),
        lambda **o: run_benchmarks(device="host", **o),
    ],
    ids=["bench", "compare", "benchmark", "run_benchmarks"],
)
def test_a_keyword_that_is_no_option_is_refused_at_once(entrance: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'metric' \(did you mean metrics\?\)"):
        entrance(metric="ipc")


def test_a_dict_of_options_serves_several_calls() -> None:
    options: Options = {"strategy": "wall", "max_seconds": 0.05, "warmup_seconds": 0.01}
    one = cuptiprof.bench(lambda: sum(range(100)), device="host", **options)
    both = cuptiprof.compare({"a": lambda: sum(range(100)), "b": lambda: None}, device="host", **options)
    assert {one.strategy, *(m.strategy for m in both.measurements)} == {"wall"}


def test_the_host_has_its_own_strategy() -> None:
    """ "kernel" needs a GPU: what nobody asked for is not refused."""
    short: Any = {"max_seconds": 0.2, "warmup_seconds": 0.1}
    assert cuptiprof.bench(lambda: sum(range(100)), device="host", **short).strategy == "cpu"
    both = cuptiprof.compare({"a": lambda: sum(range(100)), "b": lambda: sum(range(200))}, device="host", **short)
    assert [m.strategy for m in both.measurements] == ["cpu", "cpu"]
    with pytest.raises(BenchError, match="no GPU for strategy 'kernel'"):
        cuptiprof.bench(lambda: None, device="host", strategy="kernel")
