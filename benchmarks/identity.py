"""What a hardware result must say of where it was measured: chip, driver, CUPTI. python -m benchmarks.identity [--device cuda|sim]"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping
from typing import Any

FIELDS = ("chip", "driver", "cupti_version")


def identity(device: str) -> dict[str, Any]:
    """``chip`` as CUPTI names it, ``gpu``, ``driver`` (of the kernel module; the CUDA version where that is hidden), ``cupti_version``.

    Raises:
        CuptiprofError: no such device, or CUPTI refused.
    """
    from cuptiprof import _core
    from cuptiprof.device.devices import open_device

    opened = open_device(device)
    library = opened.library
    if device != "cuda":
        return {"chip": opened.chip, "gpu": f"simulated {opened.chip}", "driver": "simulated", "cupti_version": library.version}  # fmt: skip
    import ctypes

    from cuptiprof.device.driver import Driver
    from cuptiprof.doctor.surroundings import kernel_module_version

    driver = Driver()
    driver.call("cuInit", ctypes.c_uint(0))
    version = driver.version()
    return {
        "chip": _core.chip_name(library, 0),
        "gpu": driver.gpus()[0]["name"],
        "driver": kernel_module_version() or f"CUDA {version // 1000}.{version % 1000 // 10}",
        "cupti_version": library.version,
    }


def folder_name(machine: Mapping[str, Any]) -> str:
    """``<chip>-<driver>-<cupti>``, safe as the name of a folder; "unknown" for what is not said."""
    parts = (re.sub(r"[^A-Za-z0-9._]+", "_", str(machine.get(f) or "unknown")).strip("._")[:40] for f in FIELDS)
    return "-".join(part or "unknown" for part in parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=("cuda", "sim"), default="cuda")
    print(json.dumps(identity(parser.parse_args().device)))


if __name__ == "__main__":
    main()
