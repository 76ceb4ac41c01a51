"""What numbers in columns stand for, as people write them: CUPTI's enumerations and ours (csrc/base/codes.def)."""

from __future__ import annotations

from cuptiprof import _core

MEMCPY_KINDS = _core.CODES["memcpy_kind"]
MEMORY_KINDS = _core.CODES["memory_kind"]
SYNC_KINDS = _core.CODES["sync_kind"]
NO_ID = 0xFFFFFFFF
"""``synchronizations.stream`` and ``event``: none."""
OVERHEAD_KINDS = _core.CODES["overhead_kind"]
SCOPE_SOURCES = _core.CODES["scope_source"]
"""``regions.source``: what a row is."""
OPERATOR_SCOPES = _core.CODES["operator_scope"]
"""``operators.scope``: what a row is to PyTorch (at::RecordScope)."""
ALLOCATOR_ACTIONS = _core.CODES["allocator_action"]
"""``allocator_events.action``: torch's words."""
BLOCK_STATES = _core.CODES["block_state"]
"""``allocator_blocks.state``: torch's words."""
RANGE_KINDS = _core.CODES["range_kind"]
"""``metric_ranges.kind``: what was measured."""
STRATEGIES = _core.CODES["strategy"]
"""``metric_ranges.strategy``: how."""


def code_of(names: dict[int, str], text: str) -> int:
    """The value whose name is `text`; 0 if there is none."""
    return next((value for value, name in names.items() if name == text), 0)


LAUNCH, KERNEL, REGION, SAMPLE = (code_of(RANGE_KINDS, text) for text in ("launch", "kernel", "region", "sample"))
