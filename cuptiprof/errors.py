"""The one error tree. Every message says what happened; `hint` says what to do about it."""

from __future__ import annotations


class CuptiprofError(Exception):
    """Base of all errors raised by cuptiprof.

    Attributes:
        hint: what the user can do, one or more sentences; may be empty.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


class CuptiError(CuptiprofError):
    """A CUPTI or driver call failed.

    Attributes:
        code: the CUptiResult (or CUresult) value.
        name: its name, e.g. ``CUPTI_ERROR_INSUFFICIENT_PRIVILEGES``.
        call: the function that returned it.
    """

    def __init__(self, message: str, *, hint: str = "", code: int = 0, name: str = "", call: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code
        self.name = name
        self.call = call


class DeviceError(CuptiprofError):
    """No usable device: no driver, no CUPTI, or an unknown ``device=``."""


class SessionError(CuptiprofError):
    """A call that the state of the session does not allow."""


class FilterError(CuptiprofError, ValueError):
    """A kernel filter that cannot be understood, or that selected nothing."""


class BudgetError(CuptiprofError, ValueError):
    """The byte budget is too small, or storage for it cannot be had."""


class ResultError(CuptiprofError):
    """A run or trace that cannot be read, written or exported."""


class MetricError(CuptiprofError, ValueError):
    """A metric that is unknown or that the chip lacks."""


class BenchError(CuptiprofError):
    """A function that cannot be measured as asked."""
