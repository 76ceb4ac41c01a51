"""The worked examples of nvprof's and ncu's filters (tests/data/filter_examples.json)."""

import json
from pathlib import Path

import pytest

from cuptiprof.filter.kernel_filter import KernelFilter
from cuptiprof.filter.launch import Launch

EXAMPLES = json.loads((Path(__file__).parents[1] / "data" / "filter_examples.json").read_text())


def launch(fields):
    return Launch(**{("context" if key == "ctx" else key): value for key, value in fields.items()})


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e["why"])
def test_example(example):
    if "nvprof" in example:
        kernel_filter = KernelFilter.from_nvprof(example["nvprof"])
    else:
        kernel_filter = KernelFilter.from_ncu(**example["ncu"])
    assert kernel_filter.select([launch(fields) for fields in example["launches"]]) == example["selected"]
