"""Fixtures of tests of counters on a real GPU. (No conftest.py: tests import tests/conftest.py by that name.)"""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hardware_counters import CHEAP, DEVICE

import cuptiprof
from cuptiprof.counters.live import CounterWarning


@pytest.fixture(scope="module")
def torch() -> Any:
    module = pytest.importorskip("torch")
    if not module.cuda.is_available():
        pytest.skip("this torch has no CUDA")
    module.ones(8, device=DEVICE).sum().item()
    return module


@pytest.fixture(scope="module")
def denied(torch: Any) -> str:
    """What a session says when the driver gives counters to administrators only; "" when it gives them to us."""
    x = torch.ones(64, device=DEVICE)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with cuptiprof.profile(metrics=CHEAP) as prof:
            x.mul_(1.5)
    result = prof.result()
    assert len(result.kernels) == 1
    if len(result.metric_ranges):
        return ""
    said = [str(w.message) for w in caught if issubclass(w.category, CounterWarning)]
    assert said and "INSUFFICIENT_PRIVILEGES" in said[0], said
    return said[0]


@pytest.fixture
def x(torch: Any, denied: str) -> Any:
    """4 Mi floats, where counters are to be had."""
    if denied:
        pytest.skip(f"counters are denied here: {denied}")
    return torch.ones(1 << 22, device=DEVICE)
