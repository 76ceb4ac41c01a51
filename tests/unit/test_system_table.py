"""The view "system"."""

from __future__ import annotations

from report_results import make_result

from cuptiprof.report import make_report

ROWS = [
    {"timestamp": 1, "counter": "power", "device": 1, "value": 100.0},
    {"timestamp": 1, "counter": "power", "device": 0, "value": 200.0},
    {"timestamp": 3, "counter": "power", "device": 0, "value": 250.0},
    {"timestamp": 2, "counter": "power", "device": 0, "value": 300.0},
    {"timestamp": 2, "counter": "clock_reasons", "device": 0, "value": 68.0},
    {"timestamp": 3, "counter": "clock_reasons", "device": 0, "value": 4.0},
    {"timestamp": 3, "counter": "xid", "device": 0, "value": 79.0},
    {"timestamp": 3, "counter": "process_cpu", "device": -1, "value": 150.0},
    {"timestamp": 3, "counter": "\x1b[2Jof a file", "device": -1, "value": float("nan")},
]


def test_sums_by_device_and_counter() -> None:
    report = make_report(make_result({"system_samples": ROWS}), "system")
    data = report.content.data
    assert list(zip(data["device_ordinal"], data["counter"], data["count"], strict=True)) == [
        (0, "Power", 3), (0, "Clock Reasons", 2), (0, "XID", 1), (1, "Power", 1), (None, "Process CPU", 1),
    ]  # fmt: skip
    assert [data[k][0] for k in ("avg", "min", "max", "last", "unit")] == [250.0, 200.0, 300.0, 250.0, "W"]
    assert data["avg"][1] is None and data["remark"][1:3] == [
        "hardware thermal slowdown: 1 of 2, power cap: 2 of 2",
        "79 (1)",
    ]
    text = str(report)
    assert text.index("Host") > text.index("Power") and "\x1b" not in text


def test_values_of_a_file_that_are_none() -> None:
    rows = [{"timestamp": i, "counter": c, "device": 0, "value": v}
            for c in ("xid", "clock_reasons") for i, v in enumerate((float("nan"), float("inf"), -1e300))]  # fmt: skip
    metadata = {"system": {"missed": "many", "dropped": [], "refused": ["x"]}}
    assert "XID" in str(make_report(make_result({"system_samples": rows}, metadata), "system"))


def test_nothing_was_read() -> None:
    assert "--system-profiling on" in str(make_report(make_result({}), "system"))


def test_a_limit() -> None:
    assert "and 3 more counters" in str(make_report(make_result({"system_samples": ROWS}), "system", limit=2))


def test_units_that_people_read() -> None:
    rows = [{"timestamp": at, "counter": counter, "device": 0, "value": value} for counter, values in (
        ("performance_state", (0.0, 1.0)), ("memory_used", (5 << 30, 5 << 30)), ("sm_clock", (1980.0, 1979.0)), ("pcie_sent", (2e9, 2e9)),
        ("fan", (40.0, 40.0)),
    ) for at, value in enumerate(values)]  # fmt: skip
    report = make_report(make_result({"system_samples": rows}), "system")
    lines = [" ".join(line.split()) for line in str(report).splitlines()]
    for line in ("SM Clock (MHz) 2 1979.5 1979 1980 1979", "Fan 2 40.00% 40.00% 40.00% 40.00%", "Memory Used 2 5.0000GB 5.0000GB 5.0000GB 5.0000GB",
                 "Performance State 2 P0.5 P0 P1 P1", "PCIe Sent 2 2.0000GB/s 2.0000GB/s 2.0000GB/s 2.0000GB/s"):  # fmt: skip
        assert line in lines, lines
    assert report.rows[0]["unit"] == "MHz" and report.rows[0]["avg"] == 1979.5 and "shown" not in report.rows[0]
