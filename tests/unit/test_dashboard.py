"""The Grafana dashboard: JSON that Grafana takes, whose every metric is one that we give."""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import Any

import pytest

from cuptiprof.cli import main
from cuptiprof.publish.published_metrics import METRICS

SUFFIXES = {"counter": ("_total",), "info": ("_info",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}
GIVEN = {metric.prometheus_name + suffix: metric for metric in METRICS for suffix in SUFFIXES[metric.kind]}
OF_THE_SCRAPER = {"instance", "job"}


@pytest.fixture
def dashboard(capsys: pytest.CaptureFixture[str]) -> Any:
    assert main(["dashboard"]) == 0
    return json.loads(capsys.readouterr().out)


def expressions(dashboard: Any) -> list[str]:
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def test_its_metrics_are_ours(dashboard: Any) -> None:
    used = set()
    for expression in expressions(dashboard):
        names = re.findall(r"\bcuptiprof_\w+", expression)
        assert names, expression
        used |= set(names)
        metrics = [GIVEN[name] for name in names]  # KeyError: it is none of ours
        for metric, name in zip(metrics, names, strict=True):
            if metric.kind in ("counter", "histogram"):  # which mean something by their growth only
                assert re.search(rf"(rate|increase)\({name}\[\$__(rate_interval|range)\]", expression)
        for grouped in re.findall(r"by \(([^)]*)\)", expression):
            assert set(re.split(r", *", grouped)) <= {"le"}.union(*(m.labels for m in metrics))
        assert expression.count("(") == expression.count(")")
    # Busy, launches, regions, kernels, steps, copies, memory, losses.
    assert len({GIVEN[name].name for name in used}) >= 11


def test_its_legends_name_labels_that_are_there(dashboard: Any) -> None:
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            labels = {label for name in re.findall(r"\bcuptiprof_\w+", target["expr"]) for label in GIVEN[name].labels}
            told = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert told <= labels | OF_THE_SCRAPER | {"rank", "host"}


def test_grafana_takes_it(dashboard: Any) -> None:
    """What its importer and provisioning need: one data source, asked for by a variable; panels with numbers and places of their own."""
    assert dashboard["schemaVersion"] >= 36 and dashboard["title"] == "cuptiprof" and len(dashboard["uid"]) <= 40
    (variable,) = dashboard["templating"]["list"]
    assert (variable["type"], variable["query"], variable["name"]) == ("datasource", "prometheus", "datasource")
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) >= 8
    for panel in panels:
        assert panel["type"] in ("timeseries", "bargauge", "table") and panel["title"] and panel["description"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        place = panel["gridPos"]
        assert place["x"] >= 0 and place["x"] + place["w"] <= 24
        letters = [target["refId"] for target in panel["targets"]]
        assert letters == sorted(set(letters))
        assert all(target["datasource"] == panel["datasource"] for target in panel["targets"])
    for one, other in combinations((panel["gridPos"] for panel in panels), 2):
        assert (
            one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        )  # fmt: skip
