"""``cuptiprof run --metrics-port --otlp-endpoint``: as a user of it would, interrupted in the middle."""

from __future__ import annotations

import signal
import subprocess
import urllib.error
from pathlib import Path

import msgspec
import pytest
from monitoring_systems import Collector, get, of, one, otlp_samples, samples_of
from prometheus_client.parser import text_string_to_metric_families
from watched_programs import PROGRAM, command, environment, until

import cuptiprof
from cuptiprof.cli import main, make_parser
from cuptiprof.cli.child_processes import ChildProcesses
from cuptiprof.cli.process_records import ChildPlan


def test_scraped_and_sent_and_interrupted(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    with Collector() as collector:
        words = command(
            "run", "-q", "--metrics-port", "0", "--otlp-endpoint", collector.endpoint, "-o", "saved.cuptiprof"
        )
        with subprocess.Popen(
            [*words, "program.py", "60"], cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as running:  # fmt: skip
            assert running.stderr is not None
            said = running.stderr.readline()
            assert said.startswith("cuptiprof: metrics at http://127.0.0.1:")
            url = said.split()[-1]

            def gemms() -> float:
                found = samples_of(text_string_to_metric_families(get(url)))
                return of(found, "cuptiprof_kernels_total", "kernel").get("gemm", 0)

            until(lambda: gemms() >= 100)
            running.send_signal(signal.SIGINT)
            rest = running.stderr.read()
            assert running.wait() == -signal.SIGINT and "KeyboardInterrupt" in rest
        with pytest.raises(urllib.error.URLError):
            get(url)
    last = otlp_samples(collector.requests[-1][2])
    result = cuptiprof.open(tmp_path / "saved.cuptiprof")
    assert of(last, "cuptiprof_kernels_total", "kernel")["gemm"] == len(result.kernels) >= 100
    assert of(last, "cuptiprof_region_kernels_total", "region")["train"] == len(result.kernels)
    assert of(last, "cuptiprof_session_info", "program") == {"program.py": 1}
    assert one(last, "cuptiprof_launches_total") == result.metadata["launches"]["launches"]
    assert sum(of(last, "cuptiprof_losses_total", "loss").values()) == sum(
        n for name, n in result.losses.items() if name not in result.losses.NOT_A_LOSS
    )


@pytest.mark.parametrize(
    ("port", "of_children"), [("9464", "127.0.0.1:0"), ("0.0.0.0:80", "0.0.0.0:0"), ("[::1]:0", "::1:0")]
)
def test_children_have_ports_of_their_own(port: str, of_children: str) -> None:
    words = ["run", "--profile-child-processes", "--metrics-port", port, "--otlp-endpoint", "http://x:1", "program.py"]
    children = ChildProcesses(make_parser().parse_args(words))
    try:
        told = msgspec.json.decode(msgspec.json.encode(children._plan), type=ChildPlan)  # as a child does
    finally:
        children.forget()
    assert (told.options["metrics_port"], told.options["otlp_endpoint"]) == (of_children, "http://x:1")


@pytest.mark.parametrize("port", ["99999", "localhost", "1.2.3.4:", "a:b:1", "-1", "[::1]"])
def test_what_is_no_port(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", f"--metrics-port={port}", "program.py"])
    assert "is no port: write 9464, or 0.0.0.0:9464" in capsys.readouterr().err


def test_not_with_application_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "program.py").touch()
    words = ["run", "--metrics", "ipc", "--replay-mode", "application", "--metrics-port", "[::1]:0", str(tmp_path / "program.py")]  # fmt: skip
    assert main(words) == 1
    assert "--metrics-port, --otlp-endpoint and --replay-mode application do not go together" in capsys.readouterr().err
