"""``cuptiprof.compare``: several functions measured in turn, in orders in which neither drift nor caches favour one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast, overload

from cuptiprof.bench.case import Case
from cuptiprof.bench.measure import Function, measure_cases
from cuptiprof.bench.options import Options, SweepOptions, check_names
from cuptiprof.bench.results.cycles import SAID
from cuptiprof.bench.results.in_turn import Group, judge_in_turn
from cuptiprof.bench.results.measurement import Measurement, notes_of
from cuptiprof.bench.results.parts import Scalar
from cuptiprof.bench.results.points import Params
from cuptiprof.bench.results.results_table import results_report
from cuptiprof.bench.results.row import Row
from cuptiprof.bench.results.store import Results
from cuptiprof.bench.sweep.comparing import compare_over
from cuptiprof.device.devices import Device
from cuptiprof.errors import BenchError
from cuptiprof.report.model import Report
from cuptiprof.stats.verdict import ALPHA, THRESHOLD, Verdict, check_limits
from cuptiprof.text.html import html_text
from cuptiprof.text.units import format_time

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import Unpack


@dataclass(frozen=True, repr=False)
class Comparison:
    """Measurements of several functions, the first being the base, and what each of the others is against it.

    Attributes:
        measurements: in the order given.
        verdicts: name -> verdict, of all but the first.
        in_cycles: the verdicts are on times x SM clock.
    """

    measurements: tuple[Measurement, ...]
    verdicts: Mapping[str, Verdict]
    in_cycles: bool = False

    @property
    def base(self) -> Measurement:
        """What the others are compared with."""
        return self.measurements[0]

    def __getitem__(self, name: str) -> Measurement:
        for m in self.measurements:
            if m.name == name:
                return m
        raise KeyError(name)

    def verdict(self, new: str, base: str, threshold: float = THRESHOLD, alpha: float = ALPHA) -> Verdict:
        """What one of the functions is against any other: all were measured in turn. On cycles where ``in_cycles`` is set.

        Raises:
            KeyError: no function of that name.
            BenchError: as ``judge_in_turn``.
        """
        return judge_in_turn(self[base], self[new], threshold, alpha, cycles=self.in_cycles)

    def report(self, *, units: str = "auto") -> Report:
        """The table: a row a function, with the columns of a sweep; ``.to("markdown")``, "csv" or "json" of it.

        Args:
            units: of times, as of :func:`cuptiprof.bench.results.results_table.results_report`.
        """
        rows = [Row("compare", {**m.params, "function": m.name}, m, compare="function") for m in self.measurements]
        group = Group("function", rows[0], self.verdicts)
        said = (SAID,) if self.in_cycles else ()
        return results_report(rows, self.base.environment, said, units=units, groups={row.key: group for row in rows})

    def to_pandas(self) -> pd.DataFrame:
        """The table as a pandas DataFrame: a row a function, ns; the verdicts and ratios are against the first.

        Raises:
            ResultError: pandas is not installed.
        """
        return self.report().to_pandas()

    def __repr__(self) -> str:
        return f"<cuptiprof.bench.Comparison: {', '.join(m.name for m in self.measurements)}>"

    def _repr_html_(self) -> str:
        return html_text(str(self))

    def __str__(self) -> str:
        width = max(len(m.name) for m in self.measurements)
        lines = []
        for m in self.measurements:
            i = m.interval
            verdict = self.verdicts.get(m.name)
            said = f"{verdict.kind.value:6} x{verdict.ratio:.3f}  {verdict.reason}" if verdict else "base"
            known = f"[{format_time(i.low)}, {format_time(i.high)}]" if i.confidence else "no interval"
            times = f"{format_time(i.median):>10}  {known}"
            lines.append(f"{m.name:{width}}  {times:34}  {said}")
        notes = [f"  note: {line}" for line in notes_of({m.name: m.notes for m in self.measurements})]
        notes = [f"  {SAID}", *notes] if self.in_cycles else notes
        simulated = ["  SIMULATED: not a measurement of a GPU"] if self.base.simulated else []
        return "\n".join([*lines, *simulated, *notes])


@overload
def compare(
    functions: Mapping[str, Function | Case],
    /,
    *args: Any,
    check: Any = None,
    params: Mapping[str, Scalar] | None = None,
    setup: Function | None = None,
    threshold: float = THRESHOLD,
    alpha: float = ALPHA,
    in_cycles: bool = False,
    device: str | Device | None = None,
    **options: Unpack[Options],
) -> Comparison: ...
@overload
def compare(
    functions: Mapping[str, Function | Case],
    /,
    *,
    over: Params,
    inputs: Function | None = None,
    name: str = "compare",
    check: Any = None,
    setup: Function | None = None,
    device: str | Device | None = None,
    **options: Unpack[SweepOptions],
) -> Results: ...
def compare(
    functions: Mapping[str, Function | Case],
    /,
    *args: Any,
    over: Params | None = None,
    inputs: Function | None = None,
    name: str = "compare",
    check: Any = None,
    params: Mapping[str, Scalar] | None = None,
    setup: Function | None = None,
    threshold: float = THRESHOLD,
    alpha: float = ALPHA,
    in_cycles: bool = False,
    device: str | Device | None = None,
    **options: Any,
) -> Comparison | Results:
    """Measure functions in turn and say which is faster, at one point or over several.

    Args:
        functions: name -> function, or a :class:`cuptiprof.bench.Case` with a set-up of its own; the first is the base.
        args: what each of them is called with.
        over: parameters and their values, as of ``@benchmark``: the functions are compared at each point. Gives results with a
            row for each function and point.
        inputs: with `over`: function of those parameters that it names, which makes what the functions are called with at a
            point: a tuple, or the one argument. Without it each function prepares a point itself, as with ``@benchmark``: it
            takes the parameters by name and returns what is to be timed.
        name: with `over`: in reports.
        check: what each has to give, as of :class:`cuptiprof.bench.Case`; True: what the first gives.
        threshold: relative difference that does not matter: SAME is said of less, FASTER and SLOWER of more.
        alpha: how often a claim of a difference may be wrong.
        in_cycles: judge time x the SM clock of each sample, so that clocks that differ are no difference; of kernels whose time
            goes by that clock (those that wait for DRAM have another).
        params, setup, device: as of ``cuptiprof.bench``.
        options: as of ``cuptiprof.bench``, see :class:`cuptiprof.bench.Options`; ``max_seconds`` is for each function. With
            `over` flops, bytes and dtype may be functions of the parameters.

    Raises:
        BenchError: fewer than two functions, arguments that clash, or as ``cuptiprof.bench``.
        TypeError: a keyword that is no option.
    """
    check_names("compare", options)
    if not isinstance(functions, Mapping) or len(functions) < 2:
        raise BenchError("compare() takes two functions or more", hint='compare({"old": f, "new": g})')
    try:
        check_limits(threshold, alpha)
    except ValueError as e:
        raise BenchError(str(e)) from None
    if over is None:
        if inputs is not None:
            raise BenchError("inputs= makes arguments of the parameters of over=", hint="compare({...}, x, y)")
        measured = measure_cases(_cases(functions, setup, check), _plain(options), device, args, params=params)
        base, *others = measured
        verdicts = {m.name: judge_in_turn(base, m, threshold, alpha, cycles=in_cycles) for m in others}
        return Comparison(tuple(measured), verdicts, in_cycles)
    if args or params or in_cycles or (threshold, alpha) != (THRESHOLD, ALPHA):
        raise BenchError(
            "with over= there are no arguments, params=, threshold=, alpha= or in_cycles=",
            hint="inputs= makes the arguments of a point; `cuptiprof.bench.judge` takes limits, and cycles as well as times",
        )
    return compare_over(_cases(functions, setup, check), over, inputs, name, device, options)


def _plain(options: Mapping[str, Any]) -> Options:
    return cast("Options", options)


def _cases(functions: Mapping[str, Function | Case], setup: Function | None, check: Any) -> dict[str, Case]:
    """What each has for itself goes before what is for all."""
    given = {name: f if isinstance(f, Case) else Case(f) for name, f in functions.items()}
    base, *_ = given
    out = {}
    for name, case in given.items():
        right = (None if name == base else given[base].function) if check is True else check
        out[name] = Case(case.function, case.setup or setup, right if case.check is None else case.check)
    return out
