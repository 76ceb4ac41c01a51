"""How much of the communication of a GPU was hidden behind computation."""

from __future__ import annotations

from dataclasses import dataclass

from cuptiprof.analysis.arrays.intervals import length
from cuptiprof.analysis.utilization.timeline import hidden, work_by_kind
from cuptiprof.data.result import Result


@dataclass(frozen=True)
class CommunicationOverlap:
    """Of one GPU, ns: time of computation, of communication, and of both at once."""

    device: int
    computation: int
    communication: int
    overlap: int

    @property
    def percent(self) -> float | None:
        """``overlap`` of ``communication``, 0..100; None where nothing communicated (HTA has NaN)."""
        return 100.0 * self.overlap / self.communication if self.communication else None


def comm_overlap(result: Result) -> list[CommunicationOverlap]:
    """Of each GPU that worked, by its number: HTA's ``get_comm_comp_overlap``.

    Work of one kind that overlaps counts once; copies and sets are neither of the two.
    """
    return [
        CommunicationOverlap(device, length(work["compute"]), length(work["communication"]), hidden(work))
        for device, work in work_by_kind(result).items()
    ]
