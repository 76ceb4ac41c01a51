"""Caches and clocks while counting: ncu's ``--cache-control`` and ``--clock-control``, which CUPTI has from CUDA 13.4 on."""

from __future__ import annotations

from dataclasses import dataclass

from cuptiprof import _core
from cuptiprof.errors import MetricError

CACHES = ("all", "none")
CLOCKS = ("base", "boost", "none")
_MODES = {"none": 0, "base": 1, "boost": 2}  # CUpti_ClockControl_Mode
_SINCE = 130400  # cuptiGetVersion()


@dataclass(frozen=True)
class Controls:
    """What is done to caches and clocks.

    Attributes:
        caches: "all": reset before each pass; "none".
        clocks: "base", "boost": held there; "none".
        wanted: the user asked for these clocks, so that they must be had.
        possible: the library can do both.
    """

    caches: str = "none"
    clocks: str = "none"
    wanted: bool = False
    possible: bool = False

    @property
    def mode(self) -> int:
        """CUpti_ClockControl_Mode; 0: none."""
        return _MODES[self.clocks]

    def notes(self, strategy: str, passes: int, *, held: bool, others: bool, error: int) -> list[str]:
        """What the reader of the values must know.

        Args:
            held: the clocks were held by us; others: they were locked before; error: CUPTI's code, 0: none.
        """
        notes = []
        lacking = "" if self.possible else ": this libcupti cannot reset it (CUDA 13.4 can)"
        if strategy == "replay" and passes > 1 and self.caches == "none":
            notes.append(f"replay passes see what earlier ones left in L2{lacking}")
        if others:
            notes.append("the clocks were locked before, by somebody else, and were left so")
        elif held:
            notes.append(f"the clocks were held at {self.clocks} frequency")
        elif error:
            name, what, _ = _core.error_text(error)
            notes.append(f"the clocks were not held: cuptiClockControlLock returned {name}{what and ': ' + what}")
        elif strategy == "replay":
            why = "" if self.possible else ": this libcupti cannot (CUDA 13.4 can), and CUPTI may hold them itself"
            notes.append(f"the clocks were not held{why}")
        return notes


def make_controls(caches: str | None, clocks: str | None, strategy: str, library: _core.CuptiLibrary) -> Controls:
    """What was asked for, or ncu's defaults where kernels are replayed and the library can.

    Raises:
        MetricError: asked for, and the library or the strategy has no such thing.
    """
    possible = library.version >= _SINCE
    if strategy == "sample" and caches == "all":
        raise MetricError("cache_control='all' resets caches before each pass, and sampling has none",
                          hint="cache_control='none', or another strategy")  # fmt: skip
    for option, value in (("cache_control", caches), ("clock_control", clocks)):
        if value not in (None, "none") and not possible:
            raise MetricError(
                f"{option}={value!r} needs libcupti of CUDA 13.4 or newer; this is {library.cuda_version} ({library.path})",
                hint="pip install 'nvidia-cuda-cupti>=13.4', or leave it out",
            )
    default = possible and strategy == "replay"
    return Controls(
        caches or ("all" if default else "none"),
        clocks or ("base" if default else "none"),
        wanted=clocks not in (None, "none"),
        possible=possible,
    )
