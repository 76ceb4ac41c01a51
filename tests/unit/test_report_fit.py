"""Tables in the width there is: whole lines, whole numbers, names that still say something, and what was left out is named."""

from __future__ import annotations

import itertools
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import trace_path
from metric_results import replayed
from report_results import HOSTILE, make_result, training_step

import cuptiprof
from cuptiprof.data.result import Result
from cuptiprof.report import VIEWS
from cuptiprof.text.names import display_width


def plain(text: str) -> list[str]:
    return re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()


@pytest.fixture(scope="module")
def results() -> list[Result]:
    return [training_step(), replayed(), cuptiprof.open(trace_path("train-v100"))]


@pytest.mark.parametrize("view", list(VIEWS))
def test_no_line_is_wider_than_the_terminal(results: list[Result], view: str) -> None:
    from cuptiprof.report.render import render

    for result in results:
        report = result.report(view, limit=40)
        for width, color in itertools.product([80, 100, 140, 333], [True, False]):
            text = render(report, "rich", width=width, color=color)
            assert ("\x1b" in text) == color
            for line in plain(text):
                assert display_width(line.rstrip()) <= width, (view, line)


def test_every_number_is_there_or_its_column_is_named() -> None:
    report = cuptiprof.open(trace_path("train-v100")).report("regions")
    for width in (60, 80, 100, 140, 200):
        lines = plain(report.to("rich", width=width))
        said = re.search(r"Not shown at this width: (.*?)\. A wider", " ".join(line.strip() for line in lines))
        left_out = said[1].split(", ") if said else []
        heading = re.split("  +| (?=Host)", next(line for line in lines if line.startswith(" GPU(%)")).strip())
        for column in report.content.columns:
            if column.human:
                assert (column.title in heading) != (column.title in left_out), column.title
        assert "Host P95" in heading or width == 60
        assert any("472.45ms" in line and "ProfilerStep#*" in line for line in lines)


def test_names_are_shortened_by_meaning() -> None:
    lines = plain(cuptiprof.open(trace_path("train-v100")).summary(limit=4).to("rich", width=80))
    assert any(line.endswith("bn_bw_1C11_kernel_new<…, 128, …>") for line in lines)
    assert not any("void" in line for line in lines)
    full = cuptiprof.open(trace_path("train-v100")).summary(limit=4).to("text")
    assert "void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 128, true, 1>(float, float, " in full


def test_many_rows_fit_too() -> None:
    kernels = [
        {"name": f"void ns::kernel<{i % 7}, ns::Functor<float> >(float*)", "start": i, "end": i + 1}
        for i in range(6000)
    ]
    lines = plain(make_result({"kernels": kernels}).report("gpu-trace").to("rich", width=80))
    assert len(lines) > 6000 and max(map(len, lines)) <= 80
    assert any(line.endswith("ns::kernel<3, ns::Functor<float>>") for line in lines)


def test_hostile_names_keep_to_the_width() -> None:
    kernels = [{"name": HOSTILE * 9, "start": 0, "end": 1}, {"name": "名" * 200, "start": 0, "end": 1}]
    for line in plain(make_result({"kernels": kernels}).summary(demangle=False).to("rich", width=80)):
        assert display_width(line) <= 80


COMMAND = [sys.executable, "-m", "cuptiprof", "report", str(trace_path("train-v100")), "--view", "summary"]


def test_piped_output_is_whole_unless_columns_says_otherwise(tmp_path: Path) -> None:
    clean = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    whole = subprocess.run(COMMAND, capture_output=True, text=True, env=clean, check=True).stdout
    assert max(map(len, whole.splitlines())) > 300 and "…" not in whole
    fitted = subprocess.run(COMMAND, capture_output=True, text=True, env=clean | {"COLUMNS": "90"}, check=True).stdout
    assert max(map(len, fitted.splitlines())) <= 90 and "\x1b" not in fitted
    of_readline = clean | {"COLUMNS": "80", "LINES": "24"}
    assert subprocess.run(COMMAND, capture_output=True, text=True, env=of_readline, check=True).stdout == whole


def on_a_terminal(command: list[str], **environment: str) -> str:
    ours, theirs = pty.openpty()
    clean = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
    done = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=clean | {"TERM": "xterm"} | environment
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        seen += piece
    os.close(ours)
    assert done.wait(60) == 0
    return seen.decode()


def test_a_terminal_has_colours_unless_told_otherwise() -> None:
    assert "\x1b[1m" in on_a_terminal(COMMAND, COLUMNS="100")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", on_a_terminal(COMMAND, COLUMNS="100", NO_COLOR="1"))
    assert "\x1b" not in on_a_terminal(COMMAND, COLUMNS="100", TERM="dumb")


def test_print_fits_the_terminal() -> None:
    code = (
        f"import cuptiprof; r = cuptiprof.open({str(trace_path('train-v100'))!r}).summary(); print(r); print(repr(r))"
    )
    text = on_a_terminal([sys.executable, "-c", code], COLUMNS="80")
    assert "\x1b" not in text and max(len(line.rstrip()) for line in text.splitlines()) <= 80
    assert "bn_bw_1C11_kernel_new<…, 128, …>" in text


def test_a_typed_report_is_not_endless() -> None:
    report = cuptiprof.open(trace_path("train-v100")).report("gpu-trace")
    assert len(str(report).splitlines()) > 6000 and len(repr(report).splitlines()) < 90
    assert "more rows; print() shows all" in repr(report)
