"""One point of a sweep as it was measured, or how it failed; and its JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cuptiprof.bench.results.measurement import Measurement, Scalar
from cuptiprof.bench.results.points import ADDRESS, params_key
from cuptiprof.errors import ResultError

MAX_TEXT = 2000
MAX_PARAMS = 100
MAX_NUMBER = 1e300
FAILURES = ("error", "out of memory", "timeout")


@dataclass(frozen=True)
class Failure:
    """Why a point has no measurement.

    Attributes:
        kind: one of ``FAILURES``.
        message: type and text of the exception.
        where: "file.py:12" of the benchmark's own code; empty if not known.
        seconds: of a timeout, the limit; else 0.
    """

    kind: str
    message: str
    where: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        what = self.message if self.kind == "error" else f"{self.kind}: {self.message}"
        return f"{what} ({self.where})" if self.where else what


@dataclass(frozen=True)
class Row:
    """One point.

    Attributes:
        benchmark: its name.
        params: parameters as results name them.
        measurement, failure: one of the two.
        source: SHA-256 of the benchmark's file, hex; empty if not known.
        arguments: what ``cuptiprof.bench`` was told, as plain values.
        seconds: what the point took with all preparation.
    """

    benchmark: str
    params: Mapping[str, Scalar] = field(default_factory=dict)
    measurement: Measurement | None = None
    failure: Failure | None = None
    source: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def key(self) -> tuple[str, str]:
        """The same for the same point of the same benchmark in any run."""
        return self.benchmark, params_key(self.params)

    @property
    def title(self) -> str:
        return " ".join([self.benchmark, *(f"{n}={v}" for n, v in self.params.items())])

    def to_dict(self) -> dict[str, Any]:
        """What a line of a results file holds, without the environment: that is in the line of the run."""
        out: dict[str, Any] = {
            "kind": "point",
            "benchmark": self.benchmark,
            "params": dict(self.params),
            "source": self.source,
            "arguments": dict(self.arguments),
            "seconds": self.seconds,
        }
        if self.measurement is not None:
            out["measurement"] = self.measurement.to_dict()
        if self.failure is not None:
            f = self.failure
            out["failure"] = {"kind": f.kind, "message": f.message, "where": f.where, "seconds": f.seconds}
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Row:
        """Read back what ``to_dict`` wrote; everything in it is checked.

        Raises:
            ResultError: it is no row.
        """
        measurement, failure = data.get("measurement"), data.get("failure")
        if (measurement is None) == (failure is None):
            raise ResultError("a point has either a measurement or a failure")
        return cls(
            benchmark=_text(data, "benchmark"),
            params=_params(data.get("params", {})),
            measurement=Measurement.from_dict(_mapping(measurement)) if measurement is not None else None,
            failure=_failure(_mapping(failure)) if failure is not None else None,
            source=_text(data, "source"),
            arguments=_mapping(data.get("arguments", {})),
            seconds=_seconds(data.get("seconds", 0.0)),
        )


def plain(value: Any) -> Any:
    """An argument of ``cuptiprof.bench`` as JSON can hold it, the same in every run; objects by type and their own repr()."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    text = repr(value)
    if ADDRESS.search(text):  # no repr() of its own
        fields = (f"{n}={plain(v)!r}" for n, v in sorted(getattr(value, "__dict__", {}).items()))
        text = f"{type(value).__qualname__}({', '.join(fields)})"
    return text[:MAX_TEXT]


def same_arguments(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """After a round trip through JSON as well."""
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ResultError(f"an object expected, not {type(value).__name__}")
    return value


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name, "")
    if not isinstance(value, str):
        raise ResultError(f"{name!r} is {type(value).__name__}, not text")
    return value[:MAX_TEXT]


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e12:
        raise ResultError("a number of seconds expected")
    return float(value)


def _params(value: Any) -> dict[str, Scalar]:
    params = _mapping(value)
    if len(params) > MAX_PARAMS:
        raise ResultError(f"{len(params)} parameters")
    for name, v in params.items():
        if not isinstance(v, (str, int, float, bool, type(None))) or (isinstance(v, str) and len(v) > MAX_TEXT):
            raise ResultError(f"parameter {name[:40]!r} is no short scalar")
        if isinstance(v, (int, float)) and not -MAX_NUMBER <= v <= MAX_NUMBER:  # 1e400 is read as infinity
            raise ResultError(f"parameter {name[:40]!r} is out of range")
    return dict(params)


def _failure(data: Mapping[str, Any]) -> Failure:
    kind = _text(data, "kind")
    if kind not in FAILURES:
        raise ResultError(f"unknown kind of failure {kind[:40]!r}")
    return Failure(kind, _text(data, "message"), _text(data, "where"), _seconds(data.get("seconds", 0.0)))
