"""A test that fails when the code has become slower.

pytest examples/test_speed.py --cuptiprof-json main.jsonl                                             (before the change)
pytest examples/test_speed.py --cuptiprof-baseline main.jsonl --cuptiprof-fail-if-slower 5%           (after it)
CUPTIPROF_DEVICE=sim pytest examples/test_speed.py      (no GPU needed)
"""

import torch


def test_softmax(cuptiprof_bench):
    x = torch.randn(256, 256, device="cuda" if torch.cuda.is_available() else "cpu")
    assert cuptiprof_bench(torch.softmax, x, -1).median < 50_000  # ns
