"""torch's engine is followed, also where torch is imported late. Whose its threads' work is: test_torch_programs.py."""

from __future__ import annotations

import subprocess
import sys


def test_torch_imported_inside_the_session() -> None:
    """As `cuptiprof run` has it."""
    script = """
import cuptiprof, sys
assert "torch" not in sys.modules
with cuptiprof.profile(device="sim", activities=["kernel"]):
    import torch
    from torch.autograd.variable import Variable
    assert type(Variable._execution_engine).__name__ == "Following"
    torch.ones(2, requires_grad=True).sum().backward()
assert type(Variable._execution_engine) is torch._C._ImperativeEngine
assert not [f for f in sys.meta_path if type(f).__module__ == "cuptiprof.regions.when_imported"]
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
