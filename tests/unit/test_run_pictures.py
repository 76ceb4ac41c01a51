"""Pictures of a run."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from charted_run import charted_run
from metric_results import counted, launch, values
from report_results import HOSTILE, make_result

from cuptiprof.analysis.trees.flame_tree import flame_tree
from cuptiprof.analysis.work.kernel_figures import kernel_figures
from cuptiprof.errors import ResultError
from cuptiprof.pictures.flame_and_timeline import flame
from cuptiprof.pictures.run_pictures import PLOTS

DRAWN = tuple(kind for kind in PLOTS if kind != "roofline")


def texts(svg: str) -> list[str]:
    return [("".join(e.itertext())).strip() for e in ElementTree.fromstring(svg).iter() if e.tag.endswith("}text")]


@pytest.mark.parametrize("kind", DRAWN)
def test_every_kind_says_that_it_is_simulated_and_is_the_same_again(kind: str) -> None:
    picture = charted_run().plot(kind)
    assert picture._repr_svg_() == picture.svg == charted_run().plot(kind).svg
    assert any("SIMULATED" in text for text in texts(picture.svg))


def test_kernels_have_their_share_and_calls() -> None:
    run = charted_run()
    found, said = kernel_figures(run), texts(run.plot("kernels").svg)
    for name, total, calls in zip(found.name, found.total, found.calls, strict=True):
        assert name in said and f"{100 * total / found.total.sum():.1f} %, {calls}x" in said


def test_boxes_of_the_flame_graph_are_as_wide_as_their_time() -> None:
    run = charted_run()
    tree = flame_tree(run, "region")
    assert tree is not None
    (axes,) = flame(run, "region").axes
    assert [round(box.get_width(), 9) for box in axes.patches] == [round(ns / tree.whole, 9) for ns in tree.total]
    for inner, (box, depth) in enumerate(zip(axes.patches, tree.depth.tolist(), strict=True)):
        outer = max((i for i in range(inner) if tree.depth[i] == depth - 1), default=None)
        if outer is not None:
            around = axes.patches[outer]
            assert around.get_x() <= box.get_x() + 1e-9
            assert box.get_x() + box.get_width() <= around.get_x() + around.get_width() + 1e-9


def test_roofline() -> None:
    measured = {f"roofline_{k}": v for k, v in {"fp32_achieved": 5e12, "fp32_peak": 20e12, "dram_achieved": 0.5e12, "dram_peak": 1e12,
                                                "l2_achieved": 1e12, "l2_peak": 4e12}.items()}  # fmt: skip
    run = counted([launch(1, 2)], values(1, **measured))
    said = texts(run.plot("roofline").svg)
    assert "DRAM 1 TB/s" in said and "fp32 20 TFLOP/s" in said
    assert "L2 4 TB/s" in texts(run.plot("roofline", level="l2").svg)
    with pytest.raises(ResultError, match="no roofline by l1tex"):
        run.plot("roofline", level="l1tex")


@pytest.mark.parametrize("kind", PLOTS)
def test_nothing_to_draw_is_said(kind: str) -> None:
    with pytest.raises(ResultError):
        make_result({}).plot(kind)


def test_a_kind_that_is_none() -> None:
    with pytest.raises(ResultError, match=r"no plot 'memroy' \(did you mean memory\?\)"):
        charted_run().plot("memroy")
    with pytest.raises(ResultError, match="no flame graph by 'colour'"):
        charted_run().plot("flame", by="colour")


@pytest.mark.parametrize("kind", DRAWN)
def test_hostile_names(kind: str) -> None:
    svg = charted_run(name=HOSTILE + "$x_1$</script>").plot(kind).svg
    ElementTree.fromstring(svg)
    assert "</script>" not in svg and "\x1b" not in svg and "\u202e" not in svg


def test_written_as_svg_or_png(tmp_path: Path) -> None:
    picture = charted_run().plot("steps")
    picture.save(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    picture.save(tmp_path / "a.svg")
    assert ElementTree.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")
    with pytest.raises(ResultError, match="no such kind of picture"):
        picture.save(tmp_path / "a.gif")


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ResultError, match="plots need matplotlib"):
        charted_run().plot("steps")
