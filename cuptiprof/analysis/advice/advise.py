"""What a run says about how to make it faster: every rule, the findings that can save most first."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cuptiprof.analysis.advice import (
    copy_advice,
    counter_advice,
    idle_advice,
    kernel_advice,
    run_advice,
    system_advice,
)
from cuptiprof.analysis.advice.evidence import Evidence
from cuptiprof.analysis.advice.suggestion import Advice, Candidate, Suggestion
from cuptiprof.data.coverage import unobserved
from cuptiprof.data.result import Result

Rule = Callable[[Evidence], Iterator[Suggestion | Candidate]]

_OF_THE_HOST: tuple[Rule, ...] = (
    idle_advice.outside,
    idle_advice.synchronisation,
    idle_advice.late_host,
    copy_advice.host_copies,
    run_advice.communication,
    run_advice.steps_that_stand_out,
    system_advice.throttled,
)
"""Rules on when things happened: nothing that the simulated device can know, or a run of which a filter left kernels out."""
_OF_THE_GPU: tuple[Rule, ...] = (
    kernel_advice.launch_shapes,
    kernel_advice.tensor_cores,
    counter_advice.counted_kernels,
    run_advice.memory,
    run_advice.ways_of_parallel_training,
    system_advice.errors_of_gpus,
    run_advice.losses,
)

_COUNTED = "Nothing is said of idle time, copies, communication and steps: kernels ran alone, some of them several times, to be counted."
_FILTERED = "Nothing is said of idle time, copies, communication and steps: the filter left out {} kernels, which may have run then."
_UNOBSERVED = "Nothing is said of idle time, copies, communication and steps: the session was paused in between."
_SIMULATED = "Nothing is said of idle time, copies, communication and steps: they are those of a simulated device."


def advise(result: Result, demangle: bool = True, most: int | None = None) -> Advice:
    """At most so many findings by falling time that they can save; those of which none can be known come last.

    Each time is at most what following the advice can save of the time of the GPUs, and never more than the time that it is about or than
    was recorded. Those of several findings may be the same time: they do not add up.
    """
    return advise_on(Evidence(result.timed(), demangle), most)


def advise_on(evidence: Evidence, most: int | None = None) -> Advice:
    """The same where the evidence is there already."""
    timed = evidence.result
    rejected = timed.losses["filter_rejected"]
    paused = len(unobserved(timed.metadata)[0]) > 0
    partly = timed.simulated or rejected or paused or evidence.is_counted
    rules = _OF_THE_GPU if partly else (*_OF_THE_HOST, *_OF_THE_GPU)
    found = [finding for rule in rules for finding in rule(evidence)]
    found.sort(key=lambda finding: (-finding.saves, -finding.time, finding.rule))
    notes = [_SIMULATED] if timed.simulated and evidence.gpus else []
    notes += [_COUNTED] if evidence.is_counted and evidence.gpus and not timed.simulated else []
    notes += [_FILTERED.format(f"{rejected:,}")] if rejected and evidence.gpus and not timed.simulated else []
    notes += [_UNOBSERVED] if paused and evidence.gpus and not timed.simulated else []
    more = counter_advice.would_tell_more(evidence)
    return Advice(
        [finding.made() for finding in found[:most]],
        len(found),
        evidence.whole,
        evidence.gpus,
        evidence.of_wall,
        [*notes, *([more] if more else [])],
    )
