"""The same program under our torch.profiler names and under torch.profiler itself: calls, names, shapes and device times.

Ours comes first: released Kineto keeps CUPTI to the end of the process.
"""

from __future__ import annotations

from typing import Any

import pytest

pytest_plugins = ("hardware_fixtures",)


def step(torch: Any, model: Any, optimizer: Any, images: Any, labels: Any) -> None:
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


@pytest.fixture(scope="module")
def both(torch: Any) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """(name, shapes, on the device) -> row, of ours and of torch's."""
    import cuptiprof.torch_profiler

    torch.manual_seed(0)
    model = torch.nn.Sequential(
        *(torch.nn.Conv2d(3, 64, 3, padding=1), torch.nn.BatchNorm2d(64), torch.nn.ReLU(), torch.nn.Flatten()),
        torch.nn.Linear(64 * 32 * 32, 10),
    ).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images, labels = torch.randn(64, 3, 32, 32, device="cuda"), torch.randint(10, (64,), device="cuda")
    out = []
    for module in (cuptiprof.torch_profiler, torch.profiler):
        for _ in range(5):
            step(torch, model, optimizer, images, labels)
        torch.cuda.synchronize()
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        with module.profile(activities=activities, record_shapes=True) as prof:
            for _ in range(10):
                step(torch, model, optimizer, images, labels)
            torch.cuda.synchronize()
        averages = prof.key_averages(group_by_input_shape=True)
        out.append({(row.key, str(row.input_shapes), row.device_type): row for row in averages})
    return out[0], out[1]


def test_operators_calls_and_shapes(both: Any) -> None:
    ours, theirs = (
        {
            key: row.count
            for key, row in rows.items()
            if key[0].startswith(("aten::", "autograd::")) or "Backward" in key[0]
        }
        for rows in both
    )
    assert ours == theirs and ours


def test_kernels_and_their_times(torch: Any, both: Any) -> None:
    ours, theirs = (
        {key[0]: row for key, row in rows.items() if key[2] == torch.profiler.DeviceType.CUDA and "#" not in key[0]}
        for rows in both
    )
    assert {name: row.count for name, row in ours.items()} == {name: row.count for name, row in theirs.items()}
    for name, row in ours.items():
        assert row.self_device_time_total == pytest.approx(theirs[name].self_device_time_total, rel=0.1, abs=20), name


def test_device_times_of_operators(both: Any) -> None:
    ours, theirs = both
    for key, row in ours.items():
        if key[0] in ("aten::cudnn_convolution", "aten::convolution_backward", "aten::addmm", "aten::mm"):
            assert row.self_device_time_total == pytest.approx(theirs[key].self_device_time_total, rel=0.1, abs=20), key
            assert row.device_time_total >= row.self_device_time_total > 0
