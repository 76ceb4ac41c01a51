"""A trigger on a metric that passes a threshold, as text: ``gpu_busy < 50% for 10s``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from cuptiprof.data.system_counters import SYSTEM_COUNTERS
from cuptiprof.errors import SessionError
from cuptiprof.flight_recorder.figures import RecorderFigures, extreme
from cuptiprof.flight_recorder.triggers import Fire, Trigger
from cuptiprof.text.names import printable
from cuptiprof.text.nearest import did_you_mean
from cuptiprof.text.sizes import parse_bytes
from cuptiprof.text.time_lengths import read_time

_LONGEST = 300  # characters
_TEXT = re.compile(
    r"\s*(?P<metric>[a-z_][a-z0-9_.]*)\s*(?:\[(?P<of>[^\]\n]{0,200})\])?\s*(?P<sign>[<>])\s*"
    r"(?P<limit>\d{1,15}(?:\.\d{1,9})?\s*[A-Za-z%/µ]{0,10}?)(?:\s+for\s+(?P<hold>\S{1,20}))?\s*",
    re.ASCII,
)
_EXAMPLE = 'such as "gpu_busy<50% for 10s", "kernel_time[gemm]>2ms", "system.power[0]>600W"'
_MARGIN = 0.05  # of the limit, by which it must be passed the other way before it fires again


@dataclass(frozen=True)
class _Metric:
    unit: str  # "%", "s", "bytes", "" or what a number may end with
    values: Callable[[RecorderFigures, str], list[float]]
    of: str = ""  # what stands in brackets: "device", "name"
    needs: str = ""


def _known(key: str) -> Callable[[RecorderFigures, str], list[float]]:
    return lambda now, of: [now[key]]


def _system(name: str) -> Callable[[RecorderFigures, str], list[float]]:
    return lambda now, of: now.system_counter(name, of)


METRICS: dict[str, _Metric] = {
    "gpu_busy": _Metric("%", lambda now, of: now.gpu_busy(of), "device", "live"),
    "kernel_time": _Metric("s", lambda now, of: now.kernel_time(of), "name", "live"),
    "step_time": _Metric("s", _known("step_seconds")),
    "launches_per_second": _Metric("", _known("launches_per_second")),
    "memory": _Metric("bytes", lambda now, of: now.memory(), "", "live"),
    "losses": _Metric("", _known("lost")),
    **{
        f"system.{name}": _Metric(counter.unit, _system(name), "device", "system")
        for name, counter in SYSTEM_COUNTERS.items()
    },
}


class MetricTrigger(Trigger):
    """``METRIC < LIMIT`` or ``METRIC > LIMIT``, and ``for TIME`` where it must stay so. Fires when it has, and again only after it was clear:
    beyond the limit the other way by a twentieth of it. What is not known (nothing ran, it was not observed) neither fires nor clears.

    Of several GPUs or kernels that a metric is of, one is enough.

    Args:
        text: metrics are ``gpu_busy`` (percent of the last second; ``gpu_busy[0]``: of one GPU), ``kernel_time[NAME]`` (mean duration in the last
            second of kernels with that in their names, or that glob), ``step_time``, ``launches_per_second``, ``memory`` (allocated on the
            device; needs the activity "memory"), ``losses``, and ``system.COUNTER`` (of ``docs/system.md``; ``[0]``: of one GPU).
            Limits have units: ``50%``, ``200ms``, ``70GB``, ``600W``.

    Attributes:
        text, metric, limit: as written; its name; in its unit (percent, s, bytes).

    Raises:
        SessionError: it is none, with what may have been meant.
    """

    def __init__(self, text: str) -> None:
        match = _TEXT.fullmatch(text) if isinstance(text, str) and len(text) <= _LONGEST else None
        shown = printable(str(text)[:80])
        if match is None:
            raise SessionError(f"no trigger: {shown!r}", hint=f"METRIC<LIMIT or METRIC>LIMIT, {_EXAMPLE}")
        self.metric = match["metric"]
        metric = METRICS.get(self.metric)
        if metric is None:
            raise SessionError(
                f"no metric of triggers: {self.metric!r}{did_you_mean(self.metric, METRICS)}",
                hint=f"one of: {', '.join(name for name in METRICS if '.' not in name)}, system.power and what else the system has",
            )
        self._metric, self._of = metric, (match["of"] or "").strip()
        self._check_of(match["of"], shown)
        self.text = " ".join(text.split())
        self._is_above = match["sign"] == ">"
        self.limit = _limit(match["limit"].strip(), metric.unit, self.metric)
        hold = read_time(match["hold"]) if match["hold"] else 0
        if hold is None or (match["hold"] and match["hold"].isdigit()):
            raise SessionError(f"no time to wait: {match['hold']!r}", hint='such as "for 10s"')
        self._hold = hold / 1e9
        self.needs = frozenset([metric.needs]) if metric.needs else frozenset()
        self._since: float | None = None  # s, when it came to be so
        self._has_fired = False

    def _check_of(self, given: str | None, shown: str) -> None:
        kind = self._metric.of
        if given is not None and not kind:
            raise SessionError(f"{shown!r}: {self.metric} is of the whole run", hint=f"leave out [{self._of}]")
        if kind == "name" and not self._of:
            raise SessionError(f"{shown!r}: of which kernels?", hint=f"{self.metric}[gemm]")
        if kind == "device" and given is not None and not re.fullmatch(r"\d{1,4}", self._of, re.ASCII):
            raise SessionError(f"{shown!r}: [{printable(self._of)}] is no number of a GPU", hint=f"{self.metric}[0]")

    def arm(self, fire: Fire) -> None:
        self._since, self._has_fired = None, False

    def look(self, figures: RecorderFigures, fire: Fire) -> None:
        value = extreme(self._metric.values(figures, self._of), highest=self._is_above)
        if value != value:
            return
        beyond = value - self.limit if self._is_above else self.limit - value
        if beyond <= 0:
            self._since = None
            if beyond <= -_MARGIN * self.limit:
                self._has_fired = False
            return
        if self._since is None:
            self._since = figures.now
        if not self._has_fired and figures.now - self._since >= self._hold:
            self._has_fired = True
            fire(f"threshold: {self.text} ({value:.6g})")


def _limit(text: str, unit: str, metric: str) -> float:
    """In the metric's unit.

    Raises:
        SessionError: a number of something else.
    """
    number = re.match(r"[\d.]+", text)
    assert number is not None
    suffix = text[number.end() :].strip()
    if unit == "s":
        ns = read_time(text) if suffix else None
        if ns is not None:
            return ns / 1e9
        raise SessionError(f"{metric}: {text!r} is no length of time", hint=f"{metric}>{number[0]}ms")
    if unit in ("bytes", "bytes/s"):
        try:
            return float(parse_bytes(text.removesuffix("/s") if unit == "bytes/s" else text))
        except ValueError:
            raise SessionError(f"{metric}: {text!r} is no size", hint=f"{metric}>{number[0]}GB") from None
    if suffix not in ("", unit):
        raise SessionError(
            f"{metric}: {text!r} is not in {unit or 'plain numbers'}", hint=f"{metric}>{number[0]}{unit}"
        )
    return float(number[0])
