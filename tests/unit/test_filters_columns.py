"""KernelFilter.mask: the same verdicts over columns as launch by launch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuptiprof import _core
from cuptiprof.errors import CuptiprofError, FilterError
from cuptiprof.filter.kernel_filter import KernelFilter
from cuptiprof.filter.launch import Launch

STRINGS = ["", "_Z4gemmIfEvv", "relu", "fwd", "fwd/a", "bwd"]
CONFIG_COLUMNS = (
    "grid_x",
    "grid_y",
    "grid_z",
    "block_x",
    "block_y",
    "block_z",
    "static_shared_memory",
    "dynamic_shared_memory",
)


class Columns:
    """The part of cuptiprof.data.result.Table that mask() uses."""

    def __init__(self, columns, strings=()):
        self.columns, self.strings = columns, list(strings)

    configs = None

    def __len__(self):
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name):
        return (
            self.columns.get(name, np.zeros(len(self), "u4"))
            if name.startswith(("nvtx", "operator"))
            else self.columns[name]
        )

    codes = __getitem__


CONFIGS = Columns(
    dict(
        zip(
            CONFIG_COLUMNS,
            np.array([[1, 1, 1, 32, 1, 1, 0, 0], [2, 1, 1, 32, 1, 1, 16, 16]], "i4").T,
            strict=True,
        )
    )
)
KEYS = ("name", "region", "config", "device", "context", "stream", "thread", "step", "correlation_id")
rows = st.lists(
    st.tuples(
        st.sampled_from([1, 2]),
        st.sampled_from([0, 3, 4, 5]),
        st.integers(0, 1),
        st.integers(0, 2),
        st.integers(1, 2),
        st.integers(0, 2),
        st.integers(0, 2),
        st.integers(0, 3),
        st.integers(1, 20),
    ),
    max_size=40,
)
filters = st.sampled_from(
    [
        KernelFilter(),
        KernelFilter("gemm", regions="fwd"),
        KernelFilter("gemm", skip=1, count=3),
        KernelFilter(exclude_regions="fwd", every=2),
        KernelFilter(grid=2, block=32),
        KernelFilter(streams=[1, 2], threads=2, devices=0, contexts=1),
        KernelFilter(steps=[0, 2]),
        KernelFilter(steps=1, skip=1),
        KernelFilter(skip_before_match=3, mode="per-gpu", count=1),
        KernelFilter(count=1, mode="per-launch-config"),
        KernelFilter.from_nvprof(":::2"),
        KernelFilter.from_ncu(kernel_id="::gemm:2", nvtx_exclude="a/"),
    ]
)


def table(rows):
    data = np.array(rows, "u4").reshape(-1, len(KEYS))
    return Columns({key: np.ascontiguousarray(data[:, i]) for i, key in enumerate(KEYS)}, STRINGS)


@settings(max_examples=200, deadline=None)
@given(rows, filters)
def test_mask_is_select_in_launch_order(rows, kernel_filter):
    order = sorted(range(len(rows)), key=lambda i: rows[i][-1])
    launches = [
        Launch(
            name=STRINGS[r[0]],
            region=STRINGS[r[1]],
            grid=(1, 2)[r[2]],
            block=32,
            shared_memory=(0, 32)[r[2]],
            device=r[3],
            context=r[4],
            stream=r[5],
            thread=r[6],
            step=r[7] - 1 if r[7] else None,
        )
        for r in (rows[i] for i in order)
    ]
    expected = {order[i] for i in kernel_filter.select(launches)}
    mask = kernel_filter.mask(table(rows), CONFIGS)
    assert mask.dtype == np.bool_ and mask.shape == (len(rows),)
    assert set(np.flatnonzero(mask).tolist()) == expected


def test_configurations_are_asked_for_only_when_needed():
    kernels = table([(1, 0, 0, 0, 1, 0, 0, 0, 1)])
    assert KernelFilter("gemm").mask(kernels).tolist() == [True]
    for needs in (
        KernelFilter(grid=1),
        KernelFilter(mode="per-launch-config", skip=1),
        KernelFilter.from_ncu(kernel_id=":::2"),
    ):
        with pytest.raises(FilterError, match="launch configurations"):
            needs.mask(kernels)


def test_bad_columns_are_refused():
    f = KernelFilter()._native
    with pytest.raises(CuptiprofError, match="beyond its string list"):
        _core.select_rows(f, 1, names=["a"], name_codes=np.array([1], "u4"))
    with pytest.raises(CuptiprofError, match="one entry a row"):
        _core.select_rows(f, 2, device=np.array([1], "u4"))
    with pytest.raises(CuptiprofError, match="beyond configs"):
        _core.select_rows(f, 1, configs=np.zeros((1, 7), "i8"), config=np.array([1], "u4"))
    with pytest.raises(CuptiprofError, match="7 columns"):
        _core.select_rows(f, 1, configs=np.zeros((1, 6), "i8"), config=np.array([0], "u4"))


def test_more_keys_than_counters_is_an_error_not_a_wrong_answer():
    n = (1 << 18) + 1
    columns = {key: np.zeros(n, "u4") for key in KEYS}
    columns["context"] = np.arange(n, dtype="u4")
    columns["correlation_id"] = np.arange(n, dtype="u4")
    with pytest.raises(FilterError, match="1 launches have more distinct"):
        KernelFilter.from_nvprof(":::1").mask(Columns(columns, ["k"]))
