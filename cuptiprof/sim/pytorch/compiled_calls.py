"""Functions of torch.compile on the simulated device: they run as they were written, and what measures them is to say so.

torch compiles nothing under a dispatch mode that is not its own. Its switch for a call is looked at, where this PyTorch has it under
the name that releases from 2.5 on have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_SWITCH = "_maybe_set_eval_frame"

UNCOMPILED = "torch.compile compiles nothing on the simulated device: its functions ran as they were written"


def count_calls(eval_frame: Any, called: Callable[[], None]) -> Callable[[], None]:
    """`called` hears of each call of a compiled function from now on. Returns how to undo that.

    Args:
        eval_frame: torch._dynamo.eval_frame.
    """
    original = getattr(eval_frame, _SWITCH, None)
    if original is None:
        return lambda: None

    def switch(callback: Any) -> Any:
        if callable(callback):
            called()
        return original(callback)

    setattr(eval_frame, _SWITCH, switch)

    def put_back() -> None:
        if getattr(eval_frame, _SWITCH) is switch:
            setattr(eval_frame, _SWITCH, original)

    return put_back
