"""What the doctor found, as plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Finding:
    """Something to know. `level`: "problem" (tracing does not work), "warning" (something else may not) or "note"."""

    level: str
    what: str
    hint: str = ""


@dataclass(frozen=True)
class Feature:
    """Something that cuptiprof can do, whether it works here and, if not, why and what to do.

    `works` is None when it could not be tried.
    """

    name: str
    works: bool | None
    why: str = ""
    hint: str = ""


@dataclass
class Diagnosis:
    """Everything ``cuptiprof doctor`` prints.

    Attributes:
        device: "cuda" or "sim".
        can_trace: whether a session recorded GPU work here.
        driver: `version` (newest CUDA it supports, "13.0"), `path`, `how` it is known, `kernel_module`, `error`.
        gpus: one dict a GPU: `name`, `compute_capability`, `memory_bytes`, `multiprocessors`, `compute_mode`, `uuid`.
        libcupti: `path`, `how`, `cuda` (release), `version_from`, `version` (cuptiGetVersion), `error`, `others`.
        nvperf: paths of the `host` and `target` library beside libcupti, or None; only hardware counters need them.
        privileges: `admin_only` (the driver keeps counters for administrators; None: unknown), `cap_sys_admin`.
        trial: rows that a session recorded of one copy, one set and one kernel.
        features: what works.
        findings: what is wrong or unusual, worst first.
    """

    device: str
    can_trace: bool = False
    driver: dict[str, Any] = field(default_factory=dict)
    gpus: list[dict[str, Any]] = field(default_factory=list)
    libcupti: dict[str, Any] = field(default_factory=dict)
    nvperf: dict[str, str | None] = field(default_factory=lambda: {"host": None, "target": None})
    privileges: dict[str, bool | None] = field(default_factory=dict)
    trial: dict[str, Any] = field(default_factory=dict)
    features: list[Feature] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def simulated(self) -> bool:
        """Whether this is about the simulated device."""
        return self.device == "sim"

    def add(self, level: str, what: str, hint: str = "") -> None:
        """Append a finding."""
        self.findings.append(Finding(level, what, hint))

    def data(self) -> dict[str, Any]:
        """Everything as JSON-able data."""
        return {**asdict(self), "simulated": self.simulated}
