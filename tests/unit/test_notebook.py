"""What a notebook shows: tables, with every name escaped; and what a data frame has."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from conftest import trace_path
from metric_results import replayed
from report_results import HOSTILE, make_result, training_step

import cuptiprof
from cuptiprof.data.result import Losses
from cuptiprof.report import VIEWS


class Page(HTMLParser):
    """Tags, texts and attributes of a fragment; every tag that is opened is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.open.append(tag)
        self.attributes |= {name for name, _ in attributes}
        self.texts += [value or "" for name, value in attributes if name == "title"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


OURS = {"div", "table", "thead", "tbody", "tr", "th", "td", "pre"}


@pytest.mark.parametrize("view", list(VIEWS))
def test_reports(view: str) -> None:
    page = Page(training_step().report(view)._repr_html_())
    assert set(page.tags) <= OURS and page.attributes <= {"style", "title"}
    assert any("SIMULATED" in text for text in page.texts) and any("pool_exhausted" in text for text in page.texts)


@pytest.mark.parametrize("view", list(VIEWS))
def test_hostile_names_stay_text(view: str) -> None:
    name = HOSTILE + "\"'><script>alert(1)</script><img src=x onerror=y>"
    result = make_result(
        {
            "kernels": [{"name": name, "start": 0, "end": 10, "region": name}],
            "regions": [{"start": 0, "end": 5, "name": name, "path": name, "instance": 1, "metadata": name}],
            "api_calls": [{"start": 0, "end": 1, "name": name}],
        },
        {"device": f"import:{name}", "note": name},
    )
    for html in (
        result.report(view, demangle=False)._repr_html_(),
        result._repr_html_(),
        result.kernels._repr_html_(),
        result.regions._repr_html_(),
        result.key_averages()._repr_html_(),
    ):
        page = Page(html)
        assert set(page.tags) <= OURS and page.attributes <= {"style", "title"}
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", html)


def test_long_tables_are_cut() -> None:
    result = cuptiprof.open(trace_path("train-v100"))
    page = Page(result.report("gpu-trace")._repr_html_())
    assert page.tags.count("tr") == 101 and any("more rows" in text for text in page.texts)
    assert Page(result.kernels._repr_html_()).tags.count("tr") == 11
    full = {str(name) for name in result.summary().rows[0]["name"]}
    assert full and any(
        "float, float, float2, 128, true, 1>(float" in text for text in Page(result.summary()._repr_html_()).texts
    )


def test_objects_say_what_they_are() -> None:
    result = training_step()
    losses = result.losses
    assert "3 pool_exhausted" in repr(losses) and "nothing was lost" in repr(Losses())
    assert "pool_exhausted" in losses._repr_html_() and "Nothing was lost" in Losses()._repr_html_()
    assert "GPU activities" in repr(result.summary()) and "Report(" not in repr(result.summary())
    averages = result.key_averages()
    assert "Self CUDA" in repr(averages) and "Self CUDA" in averages._repr_html_()
    assert "result.kernels" in result._repr_html_()


@pytest.mark.parametrize("to", ["to_pandas", "to_arrow", "to_polars"])
def test_data_frames_have_the_columns_that_brackets_have(to: str) -> None:
    result = replayed()
    for table in result.tables.values():
        frame = getattr(table, to)()
        names = list(frame.column_names if to == "to_arrow" else frame.columns)
        assert names == table.all_columns and set(table.column_names) <= set(names)
        for name in names:
            want = table[name]
            got = np.array(frame[name].to_pylist() if to == "to_arrow" else list(frame[name]))
            if want.dtype == object:
                assert got.tolist() == want.tolist()
            else:
                assert np.array_equal(got, want, equal_nan=want.dtype.kind == "f"), name
    assert {"duration", "grid_x", "registers_per_thread", "ipc"} <= set(result.kernels.all_columns)
    few = getattr(result.kernels, to)(["name", "duration", "ipc"])
    assert list(few.column_names if to == "to_arrow" else few.columns) == ["name", "duration", "ipc"]
    with pytest.raises(KeyError, match="nope"):
        getattr(result.kernels, to)(["nope"])
