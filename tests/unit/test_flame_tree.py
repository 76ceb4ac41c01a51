"""Trees of GPU time: by hand, and against sums over rows."""

from __future__ import annotations

from collections import Counter

import pytest
from charted_run import charted_run
from report_results import HOSTILE, make_result

from cuptiprof.analysis.trees.flame_tree import FlameTree, flame_tree
from cuptiprof.data.result import Result


def rows(tree: FlameTree | None) -> list[tuple[int, str, int]]:
    assert tree is not None
    return list(zip(tree.depth.tolist(), tree.names, tree.total.tolist(), strict=True))


def kernel(name: str, ns: int, region: str = "", **more: object) -> dict[str, object]:
    return {"name": name, "start": 1000, "end": 1000 + ns, "region": region, "device": 0, **more}


def test_regions_by_hand() -> None:
    run = make_result({"kernels": [
        kernel("a", 10, "step/fwd"), kernel("b", 30, "step/fwd"), kernel("a", 5, "step"), kernel("a", 90), kernel("b", 7, "step/fwd"),
    ]})  # fmt: skip
    assert rows(flame_tree(run, "region")) == [
        (0, "(no region)", 90), (1, "a", 90),
        (0, "step", 52), (1, "fwd", 47), (2, "b", 37), (2, "a", 10), (1, "a", 5),
    ]  # fmt: skip


def test_each_of_several_gpus_is_a_root() -> None:
    run = make_result({"kernels": [kernel("a", 10, "r"), kernel("a", 20, "r", device=1)]})
    assert rows(flame_tree(run, "region")) == [
        (0, "GPU 1", 20), (1, "r", 20), (2, "a", 20), (0, "GPU 0", 10), (1, "r", 10), (2, "a", 10),
    ]  # fmt: skip


def test_what_nothing_is_known_of_has_no_tree() -> None:
    run = make_result({"kernels": [kernel("a", 10)]})
    assert flame_tree(run, "region") is None and flame_tree(run, "python") is None
    assert flame_tree(make_result({}), "module") is None


@pytest.mark.parametrize("most", [1, 2, 5, 100])
def test_the_heaviest_are_kept_and_hang_together(most: int) -> None:
    whole = flame_tree(charted_run(), "region")
    kept = flame_tree(charted_run(), "region", most)
    assert whole is not None and kept is not None
    assert len(kept) == min(most, len(whole)) and kept.left_out == len(whole) - len(kept)
    assert sorted(kept.total)[::-1] == sorted(whole.total.tolist())[::-1][:most]
    for before, depth in zip([-1, *kept.depth.tolist()], kept.depth.tolist(), strict=False):
        assert depth <= before + 1


def test_sums_are_those_of_the_rows() -> None:
    run = charted_run()
    tree = flame_tree(run, "python")
    assert tree is not None and tree.whole == sum(total_time(run).values())
    leaves = Counter[str]()
    for name, ns, is_work in zip(tree.names, tree.total.tolist(), tree.is_work, strict=True):
        if is_work:
            leaves[name] += ns
    assert leaves == total_time(run)


def total_time(run: Result) -> Counter[str]:
    out = Counter[str]()
    for row in run.kernels.rows():
        out[row["name"]] += row["end"] - row["start"]
    for row in run.memcpys.rows():
        out["[CUDA memcpy HtoD]" if row["copy_kind"] == 1 else "[CUDA memcpy DtoH]"] += row["end"] - row["start"]
    return out


def test_hostile_names_and_deep_paths() -> None:
    path = "/".join(f"r{i}" for i in range(2000))
    run = make_result({"kernels": [kernel(HOSTILE, 10, path), kernel("x" * 65536, 3, "</script><script>alert(1)")]})
    tree = flame_tree(run, "region")
    assert tree is not None and int(tree.depth.max()) == 2000
