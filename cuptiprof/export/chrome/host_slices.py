"""CPU rows: CUDA calls, regions and markers, and the flows from a launch to its GPU work."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.utilization.run_samples import StackTexts
from cuptiprof.data.codes import distinct
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array
from cuptiprof.export.chrome.collective_members import CollectiveSlices
from cuptiprof.export.chrome.identity import Identity
from cuptiprof.export.chrome.json_text import Events, Mask


def call_events(result: Result, who: Identity) -> Iterator[Events]:
    """CUDA runtime and driver calls."""
    table = result.tables["api_calls"]
    start, external, code = table["start"], who.call_external_id, table["return_value"]
    events = Events(len(table))
    events.text(',\n{"ph":"X","cat":"', (table["domain"] != 0).astype(np.uint8), ["cuda_runtime", "cuda_driver"])
    events.name('","name":', table.codes("name"), table.strings).number(',"pid":', who.pids(table["process"]))
    events.number(',"tid":', table["thread"]).time(',"ts":', who.clock.since(start))
    events.time(',"dur":', table["end"] - start).number(',"args":{"cbid":', table["cbid"])
    events.number(',"External id":', external, external != 0).number(',"correlation":', table["correlation_id"])
    yield events.number(',"return value":', code, code != 0).same("}}")


def region_events(result: Result, who: Identity, tid: Int64, collectives: CollectiveSlices) -> Iterator[Events]:
    """Regions as Kineto's user annotations."""
    table = result.tables["regions"]
    start, metadata = table["start"], table.codes("metadata")
    events = Events(len(table)).name(',\n{"ph":"X","cat":"user_annotation","name":', table.codes("name"), table.strings)
    events.number(f',"pid":{who.pid},"tid":', tid).time(',"ts":', who.clock.since(start))
    events.time(',"dur":', table["end"] - start)
    events.number(',"args":{"External id":', table["instance"].astype(np.int64) + who.region_base)
    events.name(',"path":', table.codes("path"), table.strings)
    for column in ("flops", "bytes"):
        events.number(f',"{column}":', table[column], np.isfinite(table[column]))
    events.name(',"metadata":', metadata, table.strings, metadata != 0)
    collectives.add_inputs(events, collectives.of_regions)
    yield events.same(',"open":true', table["is_open"] != 0).same("}}")


def gpu_region_events(result: Result, who: Identity, spans: dict[str, Array], tid: Int64) -> Iterator[Events]:
    """Regions projected to the GPU; ``spans`` from ``projection.project``."""
    regions = result.tables["regions"]
    events = Events(len(tid)).name(
        ',\n{"ph":"X","cat":"gpu_user_annotation","name":', regions.codes("name")[spans["region_row"]], regions.strings
    )
    events.number(',"pid":', who.gpu_pids(spans["device"])).number(',"tid":', tid)
    events.time(',"ts":', who.clock.since(spans["start"])).time(',"dur":', spans["end"] - spans["start"])
    yield events.number(',"args":{"External id":', spans["instance"] + who.region_base).same("}}")


def marker_events(result: Result, who: Identity, tid: Int64) -> Iterator[Events]:
    """Steps, NVTX ranges and marks. What a trace said of annotations on the GPU is worked out again (projection)."""
    markers = result.tables["markers"]
    on_gpu = markers["category"] == "gpu_user_annotation"
    table, tid = markers.where(~on_gpu), tid[~on_gpu]
    start = table["start"]
    duration, domain = table["end"] - start, table.codes("domain")
    events = Events(len(table))
    events.text(',\n{"ph":"', (duration == 0).astype(np.uint8), ["X", 'i","s":"t'])
    events.name('","cat":"user_annotation","name":', table.codes("name"), table.strings)
    events.number(f',"pid":{who.pid},"tid":', tid).time(',"ts":', who.clock.since(start))
    events.time(',"dur":', duration, duration != 0)
    yield events.same(',"args":{').name('"domain":', domain, table.strings, domain != 0).same("}}")


def sample_marks(samples: StackTexts, who: Identity, tid: Int64) -> Iterator[Events]:
    """Samples of the host: moments, of which nobody knows how long each function ran."""
    events = Events(len(tid)).name(',\n{"ph":"i","s":"t","cat":"cpu_sample","name":', samples.stack, samples.functions)
    events.number(f',"pid":{who.pid},"tid":', tid).time(',"ts":', who.clock.since(samples.time))
    yield events.name(',"args":{"stack":', samples.stack, samples.stacks).same("}}")


def flow_events(result: Result, who: Identity, name: str, tid: Int64, started: Mask) -> Iterator[Events]:
    """Arrows from the calls to the rows of a GPU table; ``started`` marks the calls that have their beginning."""
    api, table = result.tables["api_calls"], result.tables[name]
    call = who.calls(table["correlation_id"])
    joined = np.flatnonzero(call >= 0)
    begins = distinct(call[joined])
    begins = begins[~started[begins]]
    started[begins] = True
    yield _ends(
        "s", who.arrows(api["correlation_id"][begins]), who.pids(api["process"][begins]), api["thread"][begins],
        who.clock.since(api["start"][begins]),
    )  # fmt: skip
    yield _ends(
        "f", who.arrows(table["correlation_id"][joined]), who.gpu_pids(table["device"][joined]), tid[joined],
        who.clock.since(table["start"][joined]),
    )  # fmt: skip


def meeting_events(result: Result, who: Identity, tid: Int64) -> Iterator[Events]:
    """Arrows through the calls of collectives that several ranks of the trace take part in, from the first that begins to the last."""
    if who.place is None:
        return
    table = result.tables["kernels"]
    rows, call, phase = who.place.meetings.of_kernels(table)
    for letter, which in zip("stf", range(3), strict=True):
        mine = phase == which
        at = rows[mine]
        yield _ends(
            letter, call[mine], who.gpu_pids(table["device"][at]), tid[at], who.clock.since(table["start"][at]), "collective"
        )  # fmt: skip


def _ends(phase: str, key: Array, pid: Array, tid: Array, ts: Int64, name: str = "ac2g") -> Events:
    events = Events(len(key)).number(f',\n{{"ph":"{phase}","id":', key).number(',"pid":', pid).number(',"tid":', tid)
    return events.time(',"ts":', ts).same(f',"cat":"{name}","name":"{name}"' + ("}" if phase == "s" else ',"bp":"e"}'))
