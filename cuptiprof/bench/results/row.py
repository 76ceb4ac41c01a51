"""One point of a sweep as it was measured, or how it failed; and its JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from cuptiprof.bench.results.measurement import Measurement
from cuptiprof.bench.results.parts import Scalar
from cuptiprof.bench.results.points import ADDRESS, params_key
from cuptiprof.bench.results.stored import MAX_TEXT, Params, Seconds, Text, check_params, to_json
from cuptiprof.data.checked import checked
from cuptiprof.errors import ResultError

FailureKind = Literal["error", "out of memory", "timeout", "skipped"]


class Failure(msgspec.Struct, frozen=True):
    """Why a point has no measurement.

    Attributes:
        kind: "error", "out of memory", "timeout", or "skipped": the benchmark itself left the point out, which is no failure.
        message: type and text of the exception.
        where: "file.py:12" of the benchmark's own code; empty if not known.
        seconds: of a timeout, the limit; else 0.
    """

    kind: FailureKind
    message: Text = ""
    where: Text = ""
    seconds: Seconds = 0.0

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
        compare: the parameter whose values were measured in turn; empty: the point was measured alone.
    """

    benchmark: str
    params: Mapping[str, Scalar] = field(default_factory=dict)
    measurement: Measurement | None = None
    failure: Failure | None = None
    source: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    compare: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """The same for the same point of the same benchmark in any run."""
        return self.benchmark, params_key(self.params)

    @property
    def failed(self) -> bool:
        """It should have been measured, and could not be."""
        return self.failure is not None and self.failure.kind != "skipped"

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
            "compare": self.compare,
        }
        if self.measurement is not None:
            out["measurement"] = self.measurement.to_dict()
        if self.failure is not None:
            out["failure"] = to_json(self.failure)
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Row:
        """Read back what ``to_dict`` wrote; everything in it is checked.

        Raises:
            ResultError: it is no row.
        """
        stored = checked(dict(data), _StoredRow, "not a point")
        if (stored.measurement is None) == (stored.failure is None):
            raise ResultError("a point has either a measurement or a failure")
        check_params(stored.params)
        measured = Measurement.from_dict(stored.measurement) if stored.measurement is not None else None
        return cls(
            stored.benchmark,
            stored.params,
            measured,
            stored.failure,
            stored.source,
            stored.arguments,
            stored.seconds,
            stored.compare,
        )


class _StoredRow(msgspec.Struct):
    benchmark: Text = ""
    params: Params = {}
    measurement: dict[str, Any] | None = None
    failure: Failure | None = None
    source: Text = ""
    arguments: dict[str, Any] = {}
    seconds: Seconds = 0.0
    compare: Text = ""


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
