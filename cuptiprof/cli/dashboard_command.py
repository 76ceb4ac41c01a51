"""Print the Grafana dashboard of what sessions publish.

JSON to import in Grafana; it asks which Prometheus to read.
"""

from __future__ import annotations

import argparse
import sys
from importlib.resources import files

SUMMARY = "Print the Grafana dashboard of what sessions publish (run --metrics-port, --otlp-endpoint)."
EXAMPLES = """examples:
  cuptiprof dashboard > cuptiprof.json                 (Grafana: Dashboards, New, Import)
  cuptiprof dashboard > /etc/grafana/dashboards/cuptiprof.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None: it is one dashboard."""


def main(arguments: argparse.Namespace) -> int:
    sys.stdout.write(files("cuptiprof").joinpath("publish/dashboard.json").read_text(encoding="utf-8"))
    return 0
