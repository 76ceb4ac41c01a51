"""The session that ``cuptiprof run``'s options ask for: in its own process, and in the children of the script."""

from __future__ import annotations

import argparse
import sys
import threading
import warnings
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import cuptiprof
from cuptiprof.cli.live_panel import live_display
from cuptiprof.cli.metric_arguments import counter_options
from cuptiprof.cli.standard_streams import usable
from cuptiprof.counters.live import CounterWarning
from cuptiprof.data.result import Result
from cuptiprof.errors import FilterError
from cuptiprof.session.assemble import DepartedWarning, EmptySelectionWarning
from cuptiprof.session.python_frames import RUNNERS
from cuptiprof.session.sources import LEVELS

if TYPE_CHECKING:
    from cuptiprof.publish.open_telemetry import OpenTelemetry
    from cuptiprof.publish.prometheus import Prometheus


class RunSession:
    """A session that has not started."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        """
        Raises:
            CuptiprofError: an option that is no such thing.
        """
        self._timeout: float | None = arguments.timeout
        self._timer: threading.Timer | None = None
        self._display = live_display() if arguments.live else None
        self._scraped = _scraped(arguments)
        self._profile = cuptiprof.profile(
            device=arguments.device,
            activities=arguments.activities.split(",") if arguments.activities else None,
            sources=_sources(arguments),
            kernels=_filter(arguments),
            keep=arguments.keep,
            budget=arguments.budget,
            profile_from_start=arguments.profile_from_start == "on",
            system=arguments.system_profiling == "on",
            live=arguments.live_remote,
            on_live=self._display.show if self._display is not None else None,
            publish=[*([self._scraped] if self._scraped else ()), *_sent(arguments)] or None,
            **counter_options(arguments),
        )

    def start(self) -> None:
        """See ``profile.start``."""
        self._profile.start()
        if self._scraped is not None and usable(sys.stderr):
            print(f"cuptiprof: metrics at {self._scraped.url}", file=sys.stderr)
        if self._timeout:
            self._timer = threading.Timer(self._timeout, self._pause)
            self._timer.daemon = True
            self._timer.start()

    def stop(self, *, quiet: bool) -> Result:
        """Args:
        quiet: nothing is printed that would say what warnings say.
        """
        if self._timer is not None:
            self._timer.cancel()
        with warnings.catch_warnings():
            for kind in (EmptySelectionWarning, *(() if quiet else (CounterWarning, DepartedWarning))):
                warnings.simplefilter("ignore", kind)  # the report's header says it
            try:
                return self._profile.stop()
            finally:
                if self._display is not None:
                    self._display.close()

    def _pause(self) -> None:
        if self._profile.state == "running":
            self._profile.pause()


def _scraped(arguments: argparse.Namespace) -> Prometheus | None:
    if arguments.metrics_port is None:
        return None
    from cuptiprof.publish.prometheus import Prometheus

    address, _, port = arguments.metrics_port.rpartition(":")
    return Prometheus(int(port), address=address)


def _sent(arguments: argparse.Namespace) -> list[OpenTelemetry]:
    if arguments.otlp_endpoint is None:
        return []
    from cuptiprof.publish.open_telemetry import OpenTelemetry

    return [OpenTelemetry(arguments.otlp_endpoint)]


def _sources(arguments: argparse.Namespace) -> dict[str, Any]:
    """ "nvtx=launch,lines" as ``profile`` takes it; "none" is nothing. Lines of the package that -m runs are the user's."""
    names = [part.strip() for part in arguments.sources.split(",") if part.strip() and part.strip() != "none"]
    if "all" in names:
        names = [name for name in LEVELS if all(n.partition("=")[0] != name for n in names)] + [
            n for n in names if n != "all"
        ]
    sources: dict[str, Any] = {name: level for name, _, level in (n.partition("=") for n in names)}
    package = arguments.script.partition(".")[0] if arguments.module else ""
    if package and package not in RUNNERS and find_spec(package):
        for name in ("lines", "stacks"):
            if sources.get(name) == "":
                sources[name] = {"packages": [package]}
    return sources


def _filter(arguments: argparse.Namespace) -> Any:
    from cuptiprof.filter.kernel_filter import KernelFilter

    a = arguments
    try:
        devices = [int(d) for d in a.devices.split(",")] if a.devices else None
    except ValueError:
        raise FilterError(f"--devices {a.devices}: not a list of numbers", hint="for example --devices 0,2") from None
    ncu = a.kernel_name or a.kernel_id or a.nvtx_include or a.nvtx_exclude
    lines, modules = a.line_include, a.module_include
    if a.kernels and ncu:
        raise FilterError("--kernels (nvprof) and -k/--kernel-id/--nvtx-include (ncu) do not go together")
    if a.kernels and all(spec.startswith("regex:") and spec.count(":") == 1 for spec in a.kernels):
        # profile(kernels="regex:...") as it is written in Python; as a regex of nvprof's it could match nothing.
        return KernelFilter(
            list(a.kernels), lines=lines, modules=modules, devices=devices, skip=a.launch_skip, count=a.launch_count
        )
    if a.kernels:
        return KernelFilter.from_nvprof(
            a.kernels, lines=lines, modules=modules, devices=devices, skip=a.launch_skip, count=a.launch_count
        )
    if ncu or lines or modules or devices or a.launch_skip or a.launch_count is not None or a.launch_skip_before_match:
        return KernelFilter.from_ncu(
            kernel_name=a.kernel_name,
            kernel_id=a.kernel_id,
            base=a.kernel_name_base,
            nvtx_include=a.nvtx_include,
            nvtx_exclude=a.nvtx_exclude,
            lines=lines,
            modules=modules,
            skip=a.launch_skip,
            count=a.launch_count,
            skip_before_match=a.launch_skip_before_match,
            devices=devices,
            mode=a.filter_mode,
        )
    return None
