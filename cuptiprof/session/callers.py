"""Whose line it was: the innermost frame outside of this package."""

from __future__ import annotations

import os
import sys
import threading
import traceback
import warnings

_FRAMES = 16  # that are looked at: more than this package ever has below the user's
_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")


def who_started() -> str:
    """For the error that a second session gets."""
    thread = threading.current_thread().name
    for frame in reversed(traceback.extract_stack(limit=_FRAMES)):
        if not frame.filename.startswith(_PACKAGE):
            return f"started at {os.path.basename(frame.filename)}:{frame.lineno} by thread {thread}"
    return f"started by thread {thread}"


def warn_caller(warning: Warning) -> None:
    """``warnings.warn``, of the user's line."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
        level += 1
    warnings.warn(warning, stacklevel=level)
