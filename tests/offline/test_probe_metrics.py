"""NVIDIA's own library knows every metric that ``cuptiprof verify`` compares, so that none is skipped for a slip of the pen."""

from __future__ import annotations

import pytest

from cuptiprof import _core
from cuptiprof.metrics import resolve
from cuptiprof.verify import Counted, all_probes
from cuptiprof.verify.checking import _HELPERS
from cuptiprof.verify.simulated import SimMachine

pytest_plugins = ["nvidia_libraries"]

# Chip -> metrics of the probes that it really lacks.
LACKING = {
    "GH100": set(),
    "GA100": set(),
    "AD102": set(),
    "TU102": set(),
    "GB100": {"sm__inst_executed_pipe_tensor_op_hmma.sum"},
}


@pytest.mark.parametrize("chip", LACKING)
def test_every_metric_exists(cupti_13_0: str, chip: str) -> None:
    planner = _core.MetricPlanner(_core.load_cupti(cupti_13_0), chip)
    machine = SimMachine()
    lacking, known, passes = set(), set(), {}
    for name, probe in all_probes().items():
        if probe.subject in ("activity", "times"):
            continue
        plan = probe.plan(machine)
        assert isinstance(plan, Counted)
        inputs: list[str] = []
        for metric in {e.metric for e in plan.expected} - set(plan.words) | set(_HELPERS):
            needed = [i for m in resolve([metric], chip) for i in m.inputs]
            if any(planner.properties(i) is None for i in needed):
                lacking.add(metric)
            else:
                known.add(metric)
                inputs += needed
        passes[name] = sum(g.passes for g in planner.plan(sorted(set(inputs))))
    assert lacking == LACKING[chip]
    assert len(known) > 30
    # Waiting kernels take 4 ms a pass and streams some more: a whole run stays within seconds.
    assert max(passes.values()) <= 12, passes
