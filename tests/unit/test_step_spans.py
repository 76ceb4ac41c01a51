"""Steps with their GPU work: of one step it is not looked for in all of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_results import make_result

from cuptiprof.analysis.training_steps import step_spans

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30), st.integers(0, 6)), max_size=8)


def test_the_shorter_way_is_taken() -> None:
    calls = [
        {"name": "cudaLaunchKernel", "start": 10 * i, "end": 10 * i + 5, "correlation_id": i + 1} for i in range(3)
    ]
    kernels = [
        {"name": "a", "start": a, "end": b, "correlation_id": n} for a, b, n in ((1, 4, 9), (5, 9, 1), (30, 40, 2))
    ]
    result = make_result({"api_calls": calls, "kernels": kernels})
    host = step_spans.StepSpans(["0"], np.array([0]), np.array([25]))
    found = step_spans._single(result, host)
    # What nobody launched ended at 4; the last work ended after the host had.
    assert found is not None and (found.start.tolist(), found.end.tolist()) == ([4], [40])
    assert step_spans._single(result, step_spans.StepSpans(["0"], np.array([0]), np.array([24]))) is None


@given(SPANS, SPANS, st.booleans(), st.integers(1, 4))
def test_one_step_is_found_without_looking_at_all_work(
    work: list[Any], calls: list[Any], marked: bool, head: int
) -> None:
    """The shorter way gives what the general one does."""
    tables = {
        "kernels": [{"name": "a", "start": a, "end": a + b, "correlation_id": n} for a, b, n in sorted(work)[::2]],
        "memcpys": [{"start": a, "end": a + b, "correlation_id": n} for a, b, n in sorted(work)[1::2]],
        "api_calls": [{"name": "cudaLaunchKernel", "start": a, "end": a + b, "correlation_id": n} for a, b, n in calls],
        "markers": [{"name": "7", "category": "step", "start": 0, "end": 70}] * marked,
    }
    result = make_result(tables)
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step_spans, "_HEAD", head)
        found.append(step_spans.gpu_steps(result))
        patch.setattr(step_spans, "_single", lambda result, steps: None)
        found.append(step_spans.gpu_steps(result))
    short, general = ((steps.name, steps.start.tolist(), steps.end.tolist()) for steps in found)
    assert short == general
