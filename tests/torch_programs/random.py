"""Random programs: ``python -m torch_programs.random EXAMPLES [SEED]`` in ``tests``. A line of JSON in the end, the smallest that is wrong before it."""

from __future__ import annotations

import gc
import json
import sys
import warnings
from contextlib import suppress

from hypothesis import HealthCheck, Phase, given, reject, seed, settings
from hypothesis.errors import FlakyFailure

from torch_programs.compare import columns, differences
from torch_programs.planned import program_of
from torch_programs.plans import Plan, plans
from torch_programs.running import run
from torch_programs.truth import NotedSimulation


def main(examples: int, number: int) -> int:
    warnings.simplefilter("ignore")  # torch's, of what the programs do
    simulation = NotedSimulation()
    done = {"examples": 0, "refused": 0, "launches": 0}
    refusals: dict[str, int] = {}
    wrong = ""

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(plans)
    def belongs(plan: Plan) -> None:
        nonlocal wrong
        sources = {"operators": plan.level, "modules": "", **({"lines": ""} if plan.lines else {})}
        gc.collect()
        failure: list[Exception] = []

        def program(truth: object) -> None:
            try:
                program_of(plan)(truth)  # type: ignore[arg-type]
            except Exception as e:  # what is noted until then is compared all the same
                failure.append(e)

        ran = run(simulation, program, plan.beside, sources=sources)
        done["examples"] += 1
        done["launches"] += len(ran.launches)
        if failure:
            done["refused"] += 1
            said = f"{type(failure[0]).__name__}: {failure[0]}".splitlines()[0][:150]
            refusals[said] = refusals.get(said, 0) + 1
        said = differences(ran, columns(["operators", "modules"]))
        if said:
            wrong = "\n".join([repr(plan), repr(failure), *said[:6]])
            raise AssertionError(wrong)
        if failure:
            reject()

    with suppress(AssertionError, FlakyFailure):  # two trainers do not meet each other twice in the same way
        belongs()
    print(wrong, file=sys.stderr)
    print(json.dumps({**done, "refusals": refusals, "wrong": wrong}), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
