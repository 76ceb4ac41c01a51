"""What Perfetto's trace processor finds in our Chrome trace and in our Perfetto trace of the same run: the same slices and arrows.

python compare.py WEB_DIST CHROME_TRACE PERFETTO_TRACE      (in an environment with perfetto and protobuf)
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

APPEND, FINALIZE, QUERY = 1, 2, 3
PIECE = 1 << 24
QUERIES = {
    # A collective of which no operator tells is an operator in Chrome's: those are what its readers know.
    "slices": "SELECT replace(category, 'collective', 'cpu_op') AS kind, count(*), sum(dur) FROM slice GROUP BY kind ORDER BY kind",
    "arrows": "SELECT count(*) FROM flow",
    "tracks": "SELECT count(DISTINCT track_id) FROM slice",
    "lost": "SELECT name, value FROM stats WHERE value > 0 AND severity IN ('error', 'data_loss') ORDER BY name",
}


def _stream_class() -> Any:
    descriptors = descriptor_pb2.FileDescriptorSet()
    descriptors.ParseFromString(files("perfetto.trace_processor").joinpath("trace_processor.descriptor").read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in descriptors.file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("perfetto.protos.TraceProcessorRpcStream"))


def ask(dist: Path, trace: Path, queries: list[str]) -> list[list[tuple[Any, ...]]]:
    """Rows of each query.

    Raises:
        SystemExit: the trace processor does not take the trace, or a query.
    """
    stream_class = _stream_class()
    requests = stream_class()
    data = trace.read_bytes()
    for first in range(0, len(data), PIECE):
        requests.msg.add(request=APPEND, append_trace_data=data[first : first + PIECE])
    requests.msg.add(request=FINALIZE)
    for query in queries:
        requests.msg.add(request=QUERY).query_args.sql_query = query
    for number, message in enumerate(requests.msg, 1):
        message.seq = number
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder, "requests"), Path(folder, "replies")
        asked.write_bytes(requests.SerializeToString())
        script = Path(__file__).with_name("trace_processor.cjs")
        subprocess.run(["node", script, dist, asked, answered], check=True, timeout=300, stderr=subprocess.DEVNULL)
        replies = stream_class()
        replies.ParseFromString(answered.read_bytes())
    out: list[list[tuple[Any, ...]]] = []
    columns: list[str] = []
    cells: list[Any] = []
    for message in replies.msg:
        if message.fatal_error or message.append_result.error or message.query_result.error:
            raise SystemExit(f"{trace}: {message}")
        if not message.HasField("query_result"):
            continue
        columns = list(message.query_result.column_names) or columns
        for batch in message.query_result.batch:
            of_type = {
                2: iter(batch.varint_cells),
                3: iter(batch.float64_cells),
                4: iter(batch.string_cells.split("\0")),
            }
            cells += [None if cell == 1 else next(of_type[cell]) for cell in batch.cells]
            if batch.is_last_batch:
                out.append([tuple(cells[i : i + len(columns)]) for i in range(0, len(cells), len(columns))])
                cells = []
    return out


def main() -> None:
    dist = next(Path(sys.argv[1]).glob("v*"))
    chrome, native = (
        dict(zip(QUERIES, ask(dist, Path(name), list(QUERIES.values())), strict=True)) for name in sys.argv[2:4]
    )
    theirs = {category: rest for category, *rest in chrome["slices"]}
    mine = {category: rest for category, *rest in native["slices"]}
    # Instants and ranges of counters are in the Chrome trace alone; arguments are not compared.
    for category in sorted(set(theirs) - {None, "cpu_instant_event", "cuda_profiler_range"}):
        if theirs[category] != mine.get(category):
            raise SystemExit(f"{category}: {theirs[category]} in the Chrome trace, {mine.get(category)} in Perfetto's")
    if chrome["arrows"] != native["arrows"]:
        raise SystemExit(f"arrows: {chrome['arrows']} in the Chrome trace, {native['arrows']} in Perfetto's")
    if native["lost"]:
        raise SystemExit(f"lost of Perfetto's: {native['lost']}")
    print(f"{Path(sys.argv[3]).name}: {sum(n for n, _ in mine.values()):,} slices, {native['arrows'][0][0]:,} arrows")


if __name__ == "__main__":
    main()
