"""A session that publishes its metrics, beside one that does not: python -m benchmarks.publish [--rounds N]

One program on the stand-in, launches in batches with a step after each, in turn: traced by an ordinary session; by one that a process of its own scrapes
once a second (Prometheus does every 15 s); by one that sends OTLP once a second (every 60 s by default) to a process of its own. CPU time of the launching
thread and time by the clock, per launch. Then how long a scrape takes with as many series as names can have.
Bar: 1.05 of plain tracing.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from benchmarks.common import arguments, finish, in_turn, ratio, summary
from benchmarks.recorder import BUDGET, ROUNDS, Program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cuptiprof.publish.publisher import Publisher

LAUNCHES = 6_000_000
"""of a case, a round: some seconds"""
SCRAPES = 100
KERNELS, REGIONS = 250, 60
SCRAPER = """
import sys, time, urllib.request
while True:
    urllib.request.urlopen(sys.argv[1]).read()
    time.sleep(1)
"""
COLLECTOR = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *args): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


@contextmanager
def process(code: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Another Python, while the block runs."""
    with subprocess.Popen([sys.executable, "-c", code, *words], stdout=subprocess.PIPE, text=True) as running:
        try:
            yield running
        finally:
            running.kill()


def traced(program: Program, publish: Publisher | None = None, *, scraped: bool = False) -> dict[str, float]:
    """One case of a round."""
    import cuptiprof
    from cuptiprof.publish.prometheus import Prometheus

    activities = ["kernel", "memcpy", "memset"]
    with cuptiprof.profile(device="sim", activities=activities, budget=BUDGET, publish=publish) as prof:
        if scraped:
            assert isinstance(publish, Prometheus)
            with process(SCRAPER, publish.url):
                return timed(program, prof)
        return timed(program, prof)


def timed(program: Program, prof: Any) -> dict[str, float]:
    """ns of a launch."""
    began = time.perf_counter_ns()
    cpu = program.run(LAUNCHES, prof._session, prof.step)
    return {"ns": cpu / LAUNCHES, "clock": (time.perf_counter_ns() - began) / LAUNCHES}


def a_scrape() -> dict[str, Any]:
    """ms from asking to having, and the size, with as many names as there is room for; ms of reading the sums alone."""
    import cuptiprof
    from cuptiprof.publish.prometheus import Prometheus
    from cuptiprof.sim.sim_device import SimDevice

    device, server, took, read = SimDevice(), Prometheus(port=0), [], []
    with cuptiprof.profile(device="sim", activities=["kernel"], publish=server) as prof:
        text = b""
        for i in range(KERNELS):
            with cuptiprof.region(f"region {i % REGIONS}"):
                device.launch(f"_ZN2at6native6kernel{i:04d}Pf", count=10, duration_ns=1000 + i * 10_000)
            if i % 25 == 24:  # looks, at which names get series of their own
                device.synchronize()
                time.sleep(0.3)
                text = urllib.request.urlopen(server.url).read()
        for _ in range(SCRAPES):
            began = time.perf_counter()
            text = urllib.request.urlopen(server.url).read()
            took.append(1e3 * (time.perf_counter() - began))
            began = time.perf_counter()
            prof._session.standing_sums(50, 200)
            read.append(1e3 * (time.perf_counter() - began))
    return {
        "series": sum(not line.startswith(b"#") for line in text.splitlines()),
        "bytes": len(text),
        "scrape_ms": {"median": round(statistics.median(took), 2), "most": round(max(took), 2)},
        "sums_ms": {"median": round(statistics.median(read), 3), "most": round(max(read), 3)},
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()

    from cuptiprof.publish.open_telemetry import OpenTelemetry
    from cuptiprof.publish.prometheus import Prometheus

    program = Program()
    with process(COLLECTOR) as collector:
        assert collector.stdout is not None
        endpoint = f"http://127.0.0.1:{collector.stdout.readline().strip()}"
        found = in_turn(
            {
                "traced": lambda: traced(program),
                "scraped": lambda: traced(program, Prometheus(port=0), scraped=True),
                "sent": lambda: traced(program, OpenTelemetry(endpoint, every=1)),
            },
            options.rounds,
        )
    data = {
        "benchmark": "publish",
        "simulated": True,
        "unit": "CPU ns of the launching thread per launch",
        "ns": {m.name: summary(m.samples) for m in found.measurements},
        "ratios": {
            "scraped once a second to traced (bar 1.05)": ratio(found.verdict("scraped", "traced")),
            "sent once a second to traced (bar 1.05)": ratio(found.verdict("sent", "traced")),
        },
        "a_scrape": a_scrape(),
    }
    finish(data, options.out)


if __name__ == "__main__":
    main()
