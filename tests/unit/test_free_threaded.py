"""Free-threaded Python (PEP 703): the native module counts on the GIL, and so importing it brings the GIL back, aloud."""

from __future__ import annotations

import subprocess
import sys
import sysconfig

import pytest


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python always has its GIL")
def test_the_gil_is_back() -> None:
    code = "import sys; assert not sys._is_gil_enabled(); import cuptiprof; assert sys._is_gil_enabled()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "RuntimeWarning" in done.stderr and "cuptiprof._core" in done.stderr
