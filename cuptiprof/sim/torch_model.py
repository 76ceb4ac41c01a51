"""The model as a whole: an operator call in, launches with durations out."""

from __future__ import annotations

from cuptiprof.sim import roofline, torch_kernels, torch_library
from cuptiprof.sim.roofline import Roofline
from cuptiprof.sim.torch_lists import OptimizerStep, plan_list
from cuptiprof.sim.torch_work import FAMILIES, Array, Call, Copy, Kernel, Set, Wait, Work, words

__all__ = ["METADATA", "Array", "Call", "Copy", "Kernel", "OptimizerStep", "Set", "Wait", "Work", "duration_ns", "plan"]

assert torch_kernels and torch_library  # importing them fills FAMILIES

METADATA = words("""empty empty_like empty_strided new_empty new_empty_strided set_ resize_ resize_as_ _unsafe_view _reshape_alias
    is_same_size is_pinned record_stream _assert_async _assert_scalar _linalg_check_errors result_type size stride lift detach_
    sym_size sym_stride sym_numel sym_storage_offset _efficientzerotensor unsafe_split unsafe_split_with_sizes unsafe_chunk""")
"""Operators that give a GPU nothing to do."""


def plan(call: Call) -> tuple[list[Work], bool]:
    """What a GPU runs for `call`, and whether the model knows the operator.

    An unknown operator is taken as element-wise: every input read once, every output written once.
    """
    if call.op in METADATA or not (call.inputs or call.outputs):
        return [], True
    planner = FAMILIES.get(call.op)
    if planner is not None:
        return planner(call), True
    if call.op.startswith(("_foreach_", "_fused_")):
        return plan_list(call), True
    return torch_kernels.pointwise(call), call.pointwise


def duration_ns(chip: Roofline, work: Work) -> int:
    """Modelled duration of one piece of work, ns (0: a wait has none of its own)."""
    if isinstance(work, Kernel):
        blocks = work.grid[0] * work.grid[1] * work.grid[2]
        return roofline.kernel_ns(
            chip,
            operations=work.operations,
            peak=work.peak,
            efficiency=work.efficiency,
            blocks=blocks if work.whole_sm else None,
            moved=work.moved,
            access=work.access,
        )
    if isinstance(work, Copy):
        return roofline.copy_ns(chip, work.bytes, on_device=work.kind == "DtoD")
    if isinstance(work, Set):
        return roofline.kernel_ns(chip, moved=work.bytes)
    return 0
