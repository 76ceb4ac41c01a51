"""An installed wheel by itself: what it holds and links, and that a first day's commands work.

python .ci/smoke.py          with the interpreter of an environment that has cuptiprof and what it depends on, nothing else
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

SYSTEM = re.compile(r"(libstdc\+\+|libgcc_s|libc|libm|libpthread|libdl|librt|ld-linux[-\w]*)\.so\.[\d.]+")

SCRIPT = """
import cuptiprof
from cuptiprof.sim.sim_device import SimDevice

gpu = SimDevice()
for step in range(3):
    with cuptiprof.region("fwd"):
        gpu.launch("gemm", grid=(64, 1, 1), block=(256, 1, 1), duration_ns=20_000, count=4)
    with cuptiprof.region("bwd"):
        gpu.launch("gemm_backward", grid=(64, 1, 1), block=(256, 1, 1), duration_ns=40_000, count=4)
gpu.synchronize()
"""


def main() -> None:
    check_contents()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "train.py").write_text(SCRIPT)
        run(folder, "--version")
        assert "backward" in run(folder, "demo", "--limit", "6")
        run(folder, "run", "--device", "sim", "-o", "run.cuptiprof", "train.py")
        table = run(folder, "report", "run.cuptiprof", "--format", "csv")
        assert "gemm_backward" in table, table
        assert "bwd" in run(folder, "report", "run.cuptiprof", "--view", "regions")
        run(folder, "export", "run.cuptiprof", "-o", "trace.json.gz")
        run(folder, "doctor", "--device", "sim")


def run(folder: Path, *arguments: str) -> str:
    """Output of a command, which must succeed."""
    program = Path(sysconfig.get_path("scripts")) / "cuptiprof"
    began = time.monotonic()
    done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True)
    print(f"{time.monotonic() - began:5.1f} s  cuptiprof {' '.join(arguments)}", flush=True)
    if done.returncode != 0:
        sys.exit(f"status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def check_contents() -> None:
    import cuptiprof
    from cuptiprof import _core
    from cuptiprof.device.elf import read_elf
    from cuptiprof.sim.sim_device import library_path

    assert importlib.metadata.version("cuptiprof") == cuptiprof.__version__
    files = importlib.metadata.files("cuptiprof") or []
    assert not [f for f in files if ".libs/" in str(f)], "auditwheel had to bring libraries along"
    assert not [f for f in files if f.suffix in (".h", ".cpp", ".cu", ".a")]
    for file in (Path(_core.__file__), library_path()):
        needed = read_elf(file).needed
        assert all(SYSTEM.fullmatch(n) for n in needed), needed
        print(f"{file.name} needs {', '.join(needed)}")
    probes = _core.probe_images()
    assert probes, "built without the probes of `cuptiprof verify`"
    print(f"cuptiprof {cuptiprof.__version__}, {len(files)} files, {len(probes)} probes")


if __name__ == "__main__":
    main()
