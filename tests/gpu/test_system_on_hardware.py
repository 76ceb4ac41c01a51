"""The system beside the kernels on a real GPU (marker ``gpu``): NVML's readings have the sizes that a GPU can have."""

from __future__ import annotations

import time
from typing import Any

import pytest

import cuptiprof
from cuptiprof.device.locate import driver_present

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not driver_present(), reason="no NVIDIA driver on this machine"),
]


def test_readings_beside_a_matrix_product() -> None:
    torch: Any = pytest.importorskip("torch")
    pytest.importorskip("pynvml")
    if not torch.cuda.is_available():
        pytest.skip("this torch has no CUDA")
    a = torch.randn(8192, 8192, device="cuda")
    with cuptiprof.profile(system="20ms", activities=["kernel"]) as session:
        end = time.monotonic() + 2
        while time.monotonic() < end:
            torch.mm(a, a)
            torch.cuda.synchronize()
            session.step()
    result = session.result()
    table = result.system_samples
    device = torch.cuda.current_device()

    def of(counter: str) -> list[float]:
        return table["value"][(table["counter"] == counter) & (table["device"] == device)].tolist()  # type: ignore[no-any-return]

    assert result.metadata["system"]["source"] == "nvml" and not result.metadata["system"]["simulated_gpus"]
    assert len(of("power")) >= 20 and 10 < min(of("power")) < max(of("power")) < 2000  # W
    assert 100 < min(of("sm_clock")) <= max(of("sm_clock")) < 5000 and 5 < min(of("temperature")) < 120
    assert max(of("memory_used")) > 3 * a.numel() * a.element_size() / 2
    assert max(of("gpu_utilization")) > 50
    assert "remark" in result.report("steps").content.data and str(result.report("system-events"))
