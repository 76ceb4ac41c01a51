"""What libraries say of a file that is not what it should be."""

from __future__ import annotations

from cuptiprof.errors import ResultError


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

        if isinstance(
            error, (pa.ArrowException, OSError, ValueError, TypeError, AttributeError, LookupError, MemoryError)
        ):
            raise ResultError(f"{self._what}: damaged ({str(error) or type(error).__name__})") from None
