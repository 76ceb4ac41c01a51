"""Results are anybody's: what a hostile one can do to the page, which is to be read as text and nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_up_results import H100, answer, put, result, row_of, verify_rows
from markdown_it import MarkdownIt

from benchmarks.hardware_report.__main__ import generate
from benchmarks.hardware_report.findings import READERS, findings
from benchmarks.hardware_report.untrusted import FILE_BYTES, markdown, number_of
from benchmarks.identity import folder_name

EVIL = "<script>x</script> | ![a](http://evil.example/x.png) [b](javascript:1) `c` **d** @team www.evil.example\n\n# head\u202e\u0000\ud800"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def test_text_of_a_result_is_no_markup(tmp_path: Path) -> None:
    report = result("hardware", probes=[answer("two_threads", error=EVIL)])
    put(tmp_path, "report.json", {**report, "machine": {**H100, "chip": EVIL, "driver": EVIL}})
    page = generate(tmp_path)
    html = MarkdownIt("commonmark").enable("table").render(page)
    ordinary = MarkdownIt("commonmark").enable("table").render(generate(tmp_path / "empty"))
    for tag in ("<script", "<img", "<a ", "<strong", "<em", "<h1", "<tr"):
        # Two words are bold: "failed" of the row, instead of the sentence that nothing is verified.
        assert html.count(tag) == ordinary.count(tag), tag
    for harm in ("://evil", " www.evil", " @team", "\u202e", "\u0000"):
        assert harm not in page, harm
    line = next(line for line in page.splitlines() if line.startswith("| `two_threads`"))
    assert line.replace("\\|", "").count("|") == 4 and "&lt;script&gt;" in line  # its cells, and no more
    page.encode()  # halves of surrogates would not be UTF-8


def test_unknown_names_get_no_row(tmp_path: Path) -> None:
    evil = verify_rows(fma_f32="right")
    evil["rows"].append({"probe": "free-beer", "verdict": "right"})
    put(tmp_path, "report.json", result("hardware", verify=evil, probes=[answer("rm_rf", answer={})]))
    page = generate(tmp_path)
    assert "free-beer" not in page and "rm_rf" not in page and row_of(page, "fma-f32") == "verified: 1 right"


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    put(tmp_path, "deep.json", "[" * 200_000)
    put(tmp_path, "cut.json", '{"benchmark": ')
    put(tmp_path, "number.json", json.dumps({"n": float("nan")}))
    put(tmp_path, "list.json", [1])
    put(tmp_path, "digits.json", '{"n": ' + "9" * 10_000 + "}")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe{")
    (tmp_path / "a|b<i>.json").write_text("x")
    (tmp_path / "link.json").symlink_to("/etc/hostname")
    os.mkfifo(tmp_path / "pipe.json")
    with (tmp_path / "large.json").open("wb") as f:
        f.truncate(FILE_BYTES + 1)
    page = generate(tmp_path)
    said = page.partition("could not be read")[2].partition("\n## ")[0]
    for name in ("deep", "cut", "number", "digits", "bytes"):
        assert f"- {name}.json: unreadable" in said, name
    assert "- list.json: not a JSON object" in said and "- a\\|b&lt;i&gt;.json: unreadable" in said
    assert "- link.json: not a plain file" in said and "- pipe.json: not a plain file" in said
    assert f"- large.json: larger than {FILE_BYTES} bytes" in said


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the first draw of a text is slow
@given(benchmark=st.sampled_from(sorted(READERS)), data=st.dictionaries(st.sampled_from(["verify", "probes", "parts", "soak", "rows", "missing", "findings", "releases", "cupti_versions", "unexplained", "launches_made"]), JSON))  # fmt: skip
def test_nothing_of_any_shape_stops_the_page(benchmark: str, data: dict[str, object]) -> None:
    list(findings(result(benchmark, **data)))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text())
def test_any_text_is_one_cell_of_a_table(text: str) -> None:
    out = markdown(text, 100)
    assert "\n" not in out and "<" not in out and "|" not in out.replace("\\|", "")
    assert len(out) <= 100 * 8
    out.encode()


def test_long_text_is_cut_and_numbers_are_finite() -> None:
    assert markdown("x" * 1000, 10) == "x" * 9 + "…"
    assert number_of(2) == 2.0
    assert all(number_of(v) != number_of(v) for v in (True, "1", None, 10**400, float("inf")))


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        (H100, "GH100-580.65.06-130001"),
        ({"chip": "../../etc", "driver": "a/b c", "cupti_version": 28}, "etc-a_b_c-28"),
        ({"chip": "..", "driver": "", "cupti_version": None}, "unknown-unknown-unknown"),
    ],
)
def test_the_folder_of_a_result_is_a_plain_name(machine: dict[str, object], name: str) -> None:
    assert folder_name(machine) == name
