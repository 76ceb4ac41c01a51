"""The HTML report as a file: by export, report and diff."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import trace_path
from report_results import training_step

from cuptiprof.cli import main
from cuptiprof.errors import ResultError


def test_export(tmp_path: Path) -> None:
    training_step().export(tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert (
        text.startswith("<!DOCTYPE html>")
        and 'id="data-kernels"' in text
        and "default-src 'none'" in text.replace("&#39;", "'")
    )
    with pytest.raises(ResultError, match="exists"):
        training_step().export(tmp_path / "r.html")


def test_report_and_diff(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, page = str(trace_path("train-v100")), tmp_path / "p.html"
    assert main(["report", trace, "--format", "html", "-o", str(page)]) == 0
    assert 'id="data-kernels"' in page.read_text() and 'id="data-diff"' not in page.read_text()
    assert main(["diff", trace, trace, "--format", "html", "-o", str(page)]) == 0
    assert 'id="data-diff"' in page.read_text() and 'id="data-1-kernels"' in page.read_text()
    assert capsys.readouterr().out == ""
    assert main(["report", trace, "--format", "html"]) == 0
    assert capsys.readouterr().out.startswith("<!DOCTYPE html>")
    assert main(["report", trace, "--format", "html", "--view", "kernels"]) != 0
    assert "all views" in capsys.readouterr().err
