"""What libraries say of a file that is not what it should be."""

from __future__ import annotations

import errno

from cuptiprof.errors import ResultError

_HINT = "the file was changed or cut short after it was written: copy or save it again"


class damaged:
    """``with damaged(what):`` makes one ResultError of them, which names `what`."""

    def __init__(self, what: object) -> None:
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None or isinstance(error, ResultError):
            return
        import pyarrow as pa

        if isinstance(error, OSError) and error.errno:  # Arrow raises some that are not the system's
            hint = "close other runs, or raise the limit (ulimit -n)" if error.errno == errno.EMFILE else ""
            raise ResultError(f"{self._what}: cannot be read ({error.strerror})", hint=hint) from None
        if isinstance(
            error, (pa.ArrowException, OSError, ValueError, TypeError, AttributeError, LookupError, MemoryError)
        ):
            why = " ".join(str(error).split())[:300] or type(error).__name__  # Arrow's reasons have several lines
            raise ResultError(f"{self._what}: damaged ({why})", hint=_HINT) from None
