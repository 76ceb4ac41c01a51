"""``@cuptiprof.benchmark``: a function that makes what is to be timed, and the points at which to time it."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from cuptiprof.bench.case import Case
from cuptiprof.bench.options import SweepOptions, check_names
from cuptiprof.bench.results.points import Params, Point, make_points
from cuptiprof.errors import BenchError
from cuptiprof.text.nearest import did_you_mean

if TYPE_CHECKING:
    from typing_extensions import Unpack

PER_POINT = ("flops", "bytes", "dtype")
"""Options that may be functions of the parameters."""


class Benchmark:
    """A function with its points. Calling it calls the function.

    Attributes:
        name: in reports and in ``FILE::NAME``.
        module: where it was written.
        points: shape (n,), in the order in which they are measured.
        options: for ``cuptiprof.bench``, the same at all points unless they are functions of the parameters.
        compare: the parameter whose values are measured in turn; empty: each point alone.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        params: Params | None,
        name: str,
        options: Mapping[str, Any],
        compare: str = "",
    ) -> None:
        if not callable(function) or inspect.isclass(function):
            raise BenchError("@cuptiprof.benchmark goes on a function", hint="@cuptiprof.benchmark(params={...})")
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise BenchError(f"benchmark {function.__name__!r} is async; what is timed is an ordinary function")
        functools.update_wrapper(self, function)
        self.function = function
        self.name = name or function.__name__
        if "::" in self.name or not self.name.isprintable():
            raise BenchError(f"{self.name!r} cannot be a benchmark's name")
        self.module: str = function.__module__
        self.points = make_points(params) if params is not None else (Point({}, {}),)
        self.compare = compare
        if compare and compare not in self.parameters:
            raise BenchError(
                f"compare={compare!r} of benchmark {self.name!r} is none of its parameters{did_you_mean(compare, self.parameters)}",
                hint=f"there are: {', '.join(self.parameters) or 'none'}",
            )
        self.options = {k: v for k, v in options.items() if v is not None}
        self._check_names(function, f"benchmark {self.name!r}", must_take_all=True)
        for option in PER_POINT:
            if callable(count := self.options.get(option)):
                self._check_names(count, f"{option}= of benchmark {self.name!r}", must_take_all=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<cuptiprof.bench.Benchmark {self.name!r}: {len(self.points)} points>"

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(self.points[0].params)

    def _check_names(self, function: Callable[..., Any], what: str, *, must_take_all: bool) -> None:
        """The parameters of the sweep against those of a function."""
        taken = _named(function)
        any_name = any(p.kind == p.VAR_KEYWORD for p in taken.values())
        if only := [n for n, p in taken.items() if p.kind == p.POSITIONAL_ONLY]:
            raise BenchError(f"{what}: parameter {only[0]!r} is positional-only", hint="parameters are given by name")
        named = [n for n, p in taken.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        if must_take_all and not any_name and (unknown := [n for n in self.parameters if n not in named]):
            raise BenchError(
                f"{what} has no parameter {unknown[0]!r}{did_you_mean(unknown[0], named)}",
                hint=f"it takes: {', '.join(named) or 'nothing'}",
            )
        for name in named:
            if taken[name].default is inspect.Parameter.empty and name not in self.parameters:
                raise BenchError(
                    f"{what}: parameter {name!r} has no values{did_you_mean(name, self.parameters)}",
                    hint=f'params={{"{name}": [...]}}, or give it a default',
                )

    def options_at(self, point: Point) -> dict[str, Any]:
        """Arguments for ``cuptiprof.bench`` at a point: functions of the parameters are called with those they name.

        Raises:
            Exception: whatever such a function raises.
        """
        out = dict(self.options)
        for option in PER_POINT:
            if callable(count := out.get(option)):
                taken = _named(count)
                any_name = any(p.kind == p.VAR_KEYWORD for p in taken.values())
                out[option] = count(**{n: v for n, v in point.values.items() if any_name or n in taken})
        return out

    @contextlib.contextmanager
    def prepared(self, point: Point) -> Iterator[Case]:
        """Run the function up to what it returns or yields; what follows its ``yield`` runs when the block ends, however it does.

        Raises:
            BenchError: it gives nothing that can be called, or yields twice.
            Exception: whatever the function raises.
        """
        made = self.function(**point.values)
        if not inspect.isgenerator(made):
            yield self._case(made, "returned")
            return
        try:
            try:
                first = next(made)
            except StopIteration:
                raise BenchError(f"benchmark {self.name!r} yielded nothing") from None
            yield self._case(first, "yielded")
        except GeneratorExit:
            raise
        except BaseException as e:
            # The function's own `except` and `finally` shall see what happened; it may not turn it into success.
            with contextlib.suppress(StopIteration):
                made.throw(e)
            raise
        else:
            if next(made, _END) is not _END:
                made.close()
                raise BenchError(f"benchmark {self.name!r} yielded twice", hint="one yield: the function to be timed")

    def _case(self, made: Any, how: str) -> Case:
        case = made if isinstance(made, Case) else Case(made)
        if not callable(case.function):
            raise BenchError(
                f"benchmark {self.name!r} {how} {type(made).__name__}, not a function",
                hint="it prepares and returns what is to be timed: `return lambda: f(x)`",
            )
        return case

    @functools.cached_property
    def source(self) -> str:
        """SHA-256 of the file it is written in (helpers beside it matter as well), in hex; empty where there is none.

        Modules that the file imports are not in it.
        """
        with contextlib.suppress(OSError, TypeError):
            return hashlib.sha256(Path(inspect.getfile(self.function)).read_bytes()).hexdigest()
        with contextlib.suppress(OSError, TypeError):  # a cell of a notebook
            return hashlib.sha256(inspect.getsource(self.function).encode()).hexdigest()
        return ""


_END = object()
_registry: dict[str, list[Benchmark]] = {}


def registered(module: str) -> tuple[Benchmark, ...]:
    """The benchmarks written in a module, in the order of the text."""
    return tuple(_registry.get(module, ()))


def forget(module: str) -> None:
    """Before a module is loaded anew."""
    _registry.pop(module, None)


@overload
def benchmark(function: Callable[..., Any]) -> Benchmark: ...
@overload
def benchmark(
    *, params: Params | None = None, name: str = "", compare: str = "", **options: Unpack[SweepOptions]
) -> Callable[[Callable[..., Any]], Benchmark]: ...
def benchmark(
    function: Callable[..., Any] | None = None,
    *,
    params: Params | None = None,
    name: str = "",
    compare: str = "",
    **options: Unpack[SweepOptions],
) -> Benchmark | Callable[[Callable[..., Any]], Benchmark]:
    """Make a function a benchmark for ``cuptiprof bench FILE``.

    The function takes the parameters by name, prepares, and returns the callable that is to be timed (or a :class:`Case`); its own
    time is not measured. To clean up, let it ``yield`` the callable instead: what follows runs when the point is over.

    Args:
        function: when it is used without brackets, ``@cuptiprof.benchmark``.
        params: ``{"n": [256, 512], "dtype": ["float32"]}`` for all combinations, or a list of dicts, one a point. Values that are no
            scalars are named in results by their ``__name__`` or ``str()``.
        name: in reports; default: the function's.
        compare: a parameter (``"impl"``) whose values are measured in turn at each point of the others: reports say what each is
            against the first.
        options: as of ``cuptiprof.bench``, see :class:`cuptiprof.bench.SweepOptions`: ``flops``, ``bytes`` and ``dtype`` may be
            functions of those parameters that they name.

    Returns:
        A :class:`Benchmark`, which can still be called as the function.

    Raises:
        BenchError: parameters that clash: unknown to the function, lacking, twice, without values.
        TypeError: a keyword that is no option.
    """
    check_names("benchmark", options)
    given: dict[str, Any] = dict(options)
    if not isinstance(given.get("metrics", ""), str):
        given["metrics"] = tuple(given["metrics"])

    def decorate(f: Callable[..., Any]) -> Benchmark:
        made = Benchmark(f, params, name, given, compare)
        _registry.setdefault(made.module, []).append(made)
        return made

    return decorate if function is None else decorate(function)


def _named(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise BenchError(f"the parameters of {function!r} cannot be read", hint="write a lambda around it") from None
