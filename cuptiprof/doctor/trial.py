"""The child of the doctor: everything that calls into the driver or libcupti, step by step.

Writes one JSON object a line: ``{"step": name}`` before a step and ``{"step": name, "data": {...}}`` after it, so that the
parent knows where it died. Started by ``child.py``.
"""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from cuptiprof.errors import CuptiprofError

Step = Callable[[], dict[str, Any]]

# What is of interest without a driver too: libcupti itself.
LOOKING = ("driver", "init", "locate", "library")


def error_data(error: BaseException) -> dict[str, Any]:
    """An exception as data: `error`, `hint` and, of a failed call, `code`."""
    message = getattr(error, "message", None) or str(error) or type(error).__name__
    return {"error": message, "hint": getattr(error, "hint", ""), "code": getattr(error, "code", 0)}


class Trial:
    """The steps, and what one leaves for the next."""

    def __init__(self, device: str, loaded: str) -> None:
        self.device = device
        self.loaded = loaded  # libcupti that the parent has loaded already; "": none
        self.library: Any = None
        self.driver: Any = None
        self.loadable = True

    def steps(self) -> list[tuple[str, Step]]:
        """In order. After a failed step only those of LOOKING follow."""
        first: list[tuple[str, Step]] = (
            [] if self.device == "sim" else [("driver", self.find_driver), ("init", self.init)]
        )
        return [
            *first,
            ("locate", self.locate),
            ("library", self.load),
            ("subscribe", self.subscribe),
            ("trial", self.trial),
            ("activities", self.activities),
        ]

    def find_driver(self) -> dict[str, Any]:
        from cuptiprof import _core
        from cuptiprof.device.driver import LIBRARY, Driver, DriverError

        try:
            driver = Driver()
        except OSError as e:
            return {"error": f"no NVIDIA driver ({e})"}
        data: dict[str, Any] = {"path": _core.loaded_library(LIBRARY)}
        try:
            data["version"] = driver.version()
            self.driver = driver
        except DriverError as e:
            data |= error_data(e)
        return data

    def init(self) -> dict[str, Any]:
        from cuptiprof.device.driver import DriverError

        if self.driver is None:
            return {}
        try:
            self.driver.call("cuInit", 0)
            return {"gpus": self.driver.gpus()}
        except DriverError as e:
            self.driver = None
            return error_data(e)

    def locate(self) -> dict[str, Any]:
        from cuptiprof.device.locate import VARIABLE, Found, candidates, check_file, choose, file_version

        if self.device == "sim":
            from cuptiprof.sim.sim_device import library_path

            self.found = Found(str(library_path()), "part of cuptiprof")
            return asdict(self.found)
        if self.loaded and not os.environ.get(VARIABLE):
            self.found = Found(self.loaded, "already loaded in this process", *file_version(self.loaded))
        else:
            self.found = choose()
        chosen = os.path.realpath(self.found.path)
        others = [asdict(f) for f in candidates() if os.path.realpath(f.path) != chosen]
        data = {**asdict(self.found), "others": others}
        try:
            check_file(self.found.path)
        except CuptiprofError as e:
            data |= error_data(e)
            self.loadable = False
        return data

    def load(self) -> dict[str, Any]:
        from cuptiprof import _core
        from cuptiprof.device.locate import needs_driver

        if not self.loadable:
            return {}
        if self.device != "sim" and self.driver is None and needs_driver(self.found.path):
            return {"not_called": "libcupti of CUDA 13.2 and newer does nothing without a driver: it was not called"}
        self.library = _core.load_cupti(self.found.path, self.found.how, self.device == "sim")
        return {
            "version": self.library.version,
            "cuda": self.library.cuda_version,
            "path": self.library.path,
            "features": self.library.features(),
        }

    def subscribe(self) -> dict[str, Any]:
        self.library.try_subscribe()
        return {}

    def trial(self) -> dict[str, Any]:
        from cuptiprof.session.profile import profile

        run = self.work()
        with profile(device=self.device, budget="16 MB") as session:
            run()
        result = session.result()
        counts = {table: len(getattr(result, table)) for table in ("kernels", "memcpys", "memsets", "api_calls")}
        return {**counts, "losses": {k: v for k, v in dict(result.losses).items() if v}}

    def activities(self) -> dict[str, Any]:
        from cuptiprof.data.activities import KINDS
        from cuptiprof.session.profile import profile

        data: dict[str, Any] = {}
        for name in KINDS:
            try:
                with profile(device=self.device, activities=[name], budget="16 MB"):
                    pass
                data[name] = {}
            except CuptiprofError as e:
                data[name] = error_data(e)
        return data

    def work(self) -> Callable[[], None]:
        """One copy, one set and one kernel, ready to run."""
        if self.device != "sim":
            from cuptiprof.device.driver import Driver
            from cuptiprof.doctor.trial_work import TrialWork

            return TrialWork(self.driver or Driver()).run
        from cuptiprof.sim.sim_device import Op, SimDevice

        sim = SimDevice()

        def run() -> None:
            sim.call(Op.MEMCPY, bytes=1 << 16, copy_kind=1)
            sim.call(Op.MEMSET, bytes=1 << 16)
            sim.launch("cuptiprof_doctor")
            sim.synchronize()

        return run


def main(device: str, loaded: str, out: int) -> None:
    """Run the steps and report on file descriptor `out`."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def tell(message: dict[str, Any]) -> None:
        os.write(out, json.dumps(message).encode() + b"\n")

    failed = False
    for name, step in Trial(device, loaded).steps():
        if failed and name not in LOOKING:
            return
        tell({"step": name})
        try:
            data = step()
        except Exception as e:
            data = error_data(e)
        tell({"step": name, "data": data})
        failed = failed or "error" in data
