"""From what a session's native part hands over to a :class:`~cuptiprof.data.result.Result`."""

from __future__ import annotations

import os
import socket
import sys
from typing import TYPE_CHECKING, Any

from cuptiprof import _core
from cuptiprof.data.coverage import time_unobserved
from cuptiprof.data.result import Result, from_native
from cuptiprof.data.tables import Array, Table, merge
from cuptiprof.job.launcher import ancestors, place_in_job, process_group
from cuptiprof.session.python_frames import user_code
from cuptiprof.session.torch_modules import put_names
from cuptiprof.text.nearest import nearest
from cuptiprof.version import __version__

if TYPE_CHECKING:
    from cuptiprof.counters.live import LiveCounters
    from cuptiprof.filter.kernel_filter import KernelFilter
    from cuptiprof.io.spill import Spill
    from cuptiprof.session.following_torch import TakenTorch
    from cuptiprof.session.steps import Steps
    from cuptiprof.session.system_sampler import TakenSystem


class EmptySelectionWarning(UserWarning):
    """A kernel filter selected nothing."""


class DepartedWarning(UserWarning):
    """CUPTI left the process while a session collected: what came after is missing."""


_LATE_LATENCY = (
    "CUDA was initialised before the session, and NVIDIA wants latency timestamps switched on before: "
    "kernels.queued and submitted may be 0"
)
_WITHOUT_TIMES = (
    "{:,} records of GPU work came without times: CUPTI's buffers in GPU memory were used up "
    "(give more: device_buffer_size=, device_buffers=), or the work had not ended when the session did"
)


def run_metadata(run: dict[str, Any]) -> dict[str, Any]:
    """What every run says of itself, whether it is finished or spilled by a process that was killed."""
    place = {**place_in_job(os.environ), **process_group()}
    return {
        "format": 1,
        "cuptiprof_version": __version__,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "parents": ancestors(os.getpid()),
        "rank": place.get("rank", 0),
        **({"distributed": place} if place else {}),
        "argv": list(sys.argv),
        **run,
    }


def assemble(
    session: _core.Session,
    store: _core.Store,
    run: dict[str, Any],
    steps: Steps | None,
    kernel_filter: KernelFilter | None,
    counters: LiveCounters | None,
    spill: Spill | None,
    torch: TakenTorch,
    system: TakenSystem | None,
) -> tuple[Result, list[Warning]]:
    """The result of one cycle, and what the user is to be warned of. Changes nothing, so that it can be done again.

    Args:
        session: stopped, or at the end of a cycle: asked for counts, losses, notes and counters.
        store: what its take() or stop() handed over.
        run: metadata that only the session knows (device, times, arguments).
        steps: those of the cycle; None: the program marks none.
        torch: what PyTorch told.
        system: what was read beside; None: nothing was.
        kernel_filter: decides here what a filter that counts launches keeps; others decided in the decoder.
    """
    warned: list[Warning] = []
    parts = spill.read() if spill is not None else []
    parts = [*parts, from_native(store.tables(), store.strings())]
    tables = merge(parts) if len(parts) > 1 else parts[0]
    if torch.modules is not None:
        put_names(tables, torch.modules)
    if steps is not None:
        _add_steps(tables, steps, run)
    metadata = run_metadata({"launches": dict(session.counts()), **run})
    losses = dict(session.losses())
    losses["budget_evicted"] += steps.lost if steps is not None else 0
    if counters is not None:
        losses |= counters.add_to(session, tables, metadata, warned)
        if counters.plan.strategy == "sample":
            warned += _unrecorded(tables, losses, metadata["counters"]["notes"])
    if torch.events is not None:
        from cuptiprof.session.torch_event_tables import add_torch_events

        if note := add_torch_events(torch.events, tables, steps, with_rows=torch.operator_rows):
            _note(metadata, note)
    if torch.collectives is not None:
        from cuptiprof.session.collective_tables import add_collectives

        add_collectives(*torch.collectives, tables, losses, steps)
    if torch.allocator is not None:
        from cuptiprof.session.allocator_tables import add_allocator

        if note := add_allocator(torch.allocator, tables, metadata, losses, steps, user_code()):
            _note(metadata, note)
    if system is not None:
        ordinals = {str(gpu["uuid"]): int(gpu["ordinal"]) for gpu in metadata.get("gpus") or () if "uuid" in gpu}
        of_cupti = tables["system_samples"]
        tables["system_samples"] = _followed_by(of_cupti, system.table(of_cupti.strings, ordinals))
        metadata["system"] = {
            **system.facts,
            "source": "cupti" if len(of_cupti) else "nvml" if system.facts["gpus"] else "",
        }
        if system.facts["note"] and not len(of_cupti):
            _note(metadata, f"no readings of GPUs: {system.facts['note']}")
    metadata["cuda_was_up"] = session.cuda_was_up
    if session.cuda_was_up and (metadata.get("arguments") or {}).get("latency_timestamps"):
        _note(metadata, _LATE_LATENCY)
    if metadata["launches"]["without_times"]:
        _note(metadata, _WITHOUT_TIMES.format(metadata["launches"]["without_times"]))
    if spill is not None and spill.error is not None:
        losses["spill_dropped"] += spill.lost_rows
        _note(metadata, f"spilling failed: {spill.error}")
    for text in session.notes():
        _note(metadata, text)
    if losses["departed"]:
        warned.append(DepartedWarning(metadata["note"]))
    result = Result(tables, metadata, losses)
    if kernel_filter is None:
        return result, warned
    if kernel_filter.is_applied_late:
        mask = _counted_mask(result, kernel_filter, counters)
        losses["filter_rejected"] += int((~mask).sum())
        result = Result({**result.tables, "kernels": result.kernels.where(mask)}, result.metadata, losses)
    return result, [*warned, *_empty_selection(result, kernel_filter, store)]


def _unrecorded(tables: dict[str, Table], losses: dict[str, int], notes: list[str]) -> list[Warning]:
    """Samples without a kernel to join them to, as a note and a warning."""
    from cuptiprof.counters.live import CounterWarning
    from cuptiprof.counters.sampled import unrecorded

    text = unrecorded(len(tables["kernels"]), losses)
    if not text:
        return []
    notes.append(text)
    return [CounterWarning(text)]


def _note(metadata: dict[str, Any], text: str) -> None:
    """One more sentence in ``metadata["note"]``, which reports show."""
    metadata["note"] = f"{metadata['note']}; {text}" if metadata.get("note") else text


def _counted_mask(result: Result, kernel_filter: KernelFilter, counters: LiveCounters | None) -> Array:
    """Which kernels a filter with skip and count keeps. Launches with counters were chosen as they came; else now, in order."""
    if kernel_filter.is_stateful and counters is not None and counters.plan.strategy == "replay":
        import numpy as np

        return np.isin(result.kernels["correlation_id"], result.metric_ranges["correlation_id"])
    return kernel_filter.mask(result.kernels)


def _empty_selection(result: Result, kernel_filter: KernelFilter, store: _core.Store) -> list[EmptySelectionWarning]:
    """Where kernels came and the filter kept none: the names nearest to what it wants."""
    if len(result.kernels) or not result.losses["filter_rejected"]:
        return []
    names = nearest(" ".join(kernel_filter.name_patterns), store.kernel_names(), 5)
    text = f"no kernel matched {kernel_filter.describe()}; the nearest names were: {', '.join(names) or '(none)'}"
    _note(result.metadata, text)
    return [EmptySelectionWarning(text)]


def _steps_from_the_first(table: Table) -> Array:
    import numpy as np

    steps = table.codes("step")
    seen = table.codes("thread") != 0  # else nobody saw the launch
    return np.where((steps == 0) & seen, np.uint32(1), steps)


def _add_steps(tables: dict[str, Table], marked: Steps, run: dict[str, Any]) -> None:
    """The steps as rows of ``markers``, and what was launched before the first call of ``step()`` as the first step's; of steps that were
    observed in part, ``metadata`` says the share."""
    steps = list(marked)
    if not steps:
        return
    import numpy as np

    for name in ("kernels", "memcpys", "memsets"):
        tables[name] = tables[name].with_column("step", _steps_from_the_first)
    markers = tables["markers"]
    start, end = (np.array([getattr(s, of) for s in steps], np.int64) for of in ("start", "end"))
    missing = time_unobserved(run, start, end) / np.maximum(end - start, 1)
    observed = [f'{{"observed": {1 - share:.3f}}}' if share else "" for share in missing.tolist()]
    rows = Table.from_columns(
        "markers",
        {
            "start": [s.start for s in steps],
            "end": [s.end for s in steps],
            "name": [f"ProfilerStep#{s.number}" for s in steps],
            "category": ["step"] * len(steps),
            "id": [s.number for s in steps],
            "thread": [s.thread for s in steps],
            **({"metadata": observed} if any(observed) else {}),
        },
        markers.strings,
    )
    tables["markers"] = _followed_by(markers, rows)


def _followed_by(table: Table, more: Table) -> Table:
    """The rows of both, which share their strings."""
    import numpy as np

    joined = {c: np.concatenate([table.codes(c), more.codes(c)]) for c in table.column_names}
    return Table(table.name, joined, table.strings)
