"""CPU rows: CUDA calls, regions and markers, and the flows from a launch to its GPU work."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from cuptiprof.analysis.aggregate import Int64
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array
from cuptiprof.io.chrome.gpu_slices import chunks
from cuptiprof.io.chrome.identity import Identity
from cuptiprof.io.chrome.json_text import microseconds, quoted_codes


def call_events(result: Result, who: Identity) -> Iterator[list[str]]:
    """CUDA runtime and driver calls."""
    table = result.tables["api_calls"]
    for rows in chunks(len(table)):
        start = table["start"][rows]
        yield [
            f'{{"ph":"X","cat":"{"cuda_driver" if driver else "cuda_runtime"}","name":{name},"pid":{pid or who.pid},'
            f'"tid":{tid},"ts":{ts},"dur":{dur},"args":{{{_external(ext)}"cbid":{cbid},"correlation":{correlation}'
            f"{_failed(code)}}}}}"
            for name, ts, dur, driver, pid, tid, ext, cbid, correlation, code in zip(
                quoted_codes(table.codes("name")[rows], table.strings),
                who.clock.ts(start),
                microseconds(table["end"][rows] - start),
                table["domain"][rows].tolist(),
                table["process"][rows].tolist(),
                table["thread"][rows].tolist(),
                who.call_external_id[rows].tolist(),
                table["cbid"][rows].tolist(),
                table["correlation_id"][rows].tolist(),
                table["return_value"][rows].tolist(),
                strict=True,
            )
        ]


def region_events(result: Result, who: Identity, tid: Int64) -> Iterator[list[str]]:
    """Regions as Kineto's user annotations."""
    table = result.tables["regions"]
    for rows in chunks(len(table)):
        start = table["start"][rows]
        yield [
            f'{{"ph":"X","cat":"user_annotation","name":{name},"pid":{who.pid},"tid":{row},"ts":{ts},"dur":{dur},'
            f'"args":{{"External id":{instance + who.region_base},"path":{path}{more}}}}}'
            for name, ts, dur, row, instance, path, more in zip(
                quoted_codes(table.codes("name")[rows], table.strings),
                who.clock.ts(start),
                microseconds(table["end"][rows] - start),
                tid[rows].tolist(),
                table["instance"][rows].tolist(),
                quoted_codes(table.codes("path")[rows], table.strings),
                _region_metadata(result, rows),
                strict=True,
            )
        ]


def _region_metadata(result: Result, rows: slice) -> list[str]:
    table = result.tables["regions"]
    strings = table.strings
    out = []
    for flops, size, code, is_open in zip(
        table["flops"][rows].tolist(),
        table["bytes"][rows].tolist(),
        table.codes("metadata")[rows].tolist(),
        table["is_open"][rows].tolist(),
        strict=True,
    ):
        more = "".join(
            f',"{key}":{value!r}' for key, value in (("flops", flops), ("bytes", size)) if np.isfinite(value)
        )
        if strings[code]:
            more += f',"metadata":{json.dumps(strings[code])}'
        out.append(more + (',"open":true' if is_open else ""))
    return out


def gpu_region_events(result: Result, who: Identity, spans: dict[str, Array], tid: Int64) -> Iterator[list[str]]:
    """Regions projected to the GPU; ``spans`` from ``projection.project``."""
    regions = result.tables["regions"]
    names = quoted_codes(regions.codes("name"), regions.strings)
    for rows in chunks(len(tid)):
        yield [
            f'{{"ph":"X","cat":"gpu_user_annotation","name":{names[region]},"pid":{device},"tid":{row},"ts":{ts},'
            f'"dur":{dur},"args":{{"External id":{instance + who.region_base}}}}}'
            for region, ts, dur, device, row, instance in zip(
                spans["region_row"][rows].tolist(),
                who.clock.ts(spans["start"][rows]),
                microseconds(spans["end"][rows] - spans["start"][rows]),
                spans["device"][rows].tolist(),
                tid[rows].tolist(),
                spans["instance"][rows].tolist(),
                strict=True,
            )
        ]


def marker_events(result: Result, who: Identity, tid: Int64) -> Iterator[list[str]]:
    """Steps, NVTX ranges and marks. What a trace said of annotations on the GPU is worked out again (projection)."""
    markers = result.tables["markers"]
    on_gpu = markers["category"] == "gpu_user_annotation"
    table, tid = markers.where(~on_gpu), tid[~on_gpu]
    strings = table.strings
    for rows in chunks(len(table)):
        start = table["start"][rows]
        duration = table["end"][rows] - start
        texts = []
        for name, ts, dur, ns, row, domain in zip(
            quoted_codes(table.codes("name")[rows], strings),
            who.clock.ts(start),
            microseconds(duration),
            duration.tolist(),
            tid[rows].tolist(),
            table.codes("domain")[rows].tolist(),
            strict=True,
        ):
            args = f'"domain":{json.dumps(strings[domain])}' if strings[domain] else ""
            head = f'"cat":"user_annotation","name":{name},"pid":{who.pid},"tid":{row},"ts":{ts}'
            if ns == 0:
                texts.append(f'{{"ph":"i","s":"t",{head},"args":{{{args}}}}}')
            else:
                texts.append(f'{{"ph":"X",{head},"dur":{dur},"args":{{{args}}}}}')
        yield texts


def flow_events(
    result: Result, who: Identity, name: str, tid: Int64, started: npt.NDArray[np.bool_]
) -> Iterator[list[str]]:
    """Arrows from the calls to the rows of a GPU table; ``started`` marks the calls that have their beginning."""
    api, table = result.tables["api_calls"], result.tables[name]
    for rows in chunks(len(table)):
        correlation = table["correlation_id"][rows]
        call = who.calls(correlation)
        joined = np.flatnonzero(call >= 0)
        texts = []
        for key, row, begin, pid, thread, end, device, target in zip(
            correlation[joined].tolist(),
            call[joined].tolist(),
            who.clock.ts(api["start"][call[joined]]),
            api["process"][call[joined]].tolist(),
            api["thread"][call[joined]].tolist(),
            who.clock.ts(table["start"][rows][joined]),
            table["device"][rows][joined].tolist(),
            tid[rows][joined].tolist(),
            strict=True,
        ):
            if not started[row]:
                started[row] = True
                texts.append(
                    f'{{"ph":"s","id":{key},"pid":{pid or who.pid},"tid":{thread},"ts":{begin},"cat":"ac2g","name":"ac2g"}}'
                )
            texts.append(
                f'{{"ph":"f","id":{key},"pid":{device},"tid":{target},"ts":{end},"cat":"ac2g","name":"ac2g","bp":"e"}}'
            )
        yield texts


def _external(value: int) -> str:
    return f'"External id":{value},' if value else ""


def _failed(code: int) -> str:
    return f',"return value":{code}' if code else ""
