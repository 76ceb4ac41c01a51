"""The few messages of a Perfetto trace that are not slices (protos/perfetto/trace of its repository)."""

from __future__ import annotations

from collections.abc import Iterable

from cuptiprof.export.protobuf import Field, message

SEQUENCE = 1
_CLEARED = 1  # SEQ_INCREMENTAL_STATE_CLEARED: numbers of names begin here
_NEEDS_STATE = 2
BYTES_UNIT = 3
_REALTIME, _BOOTTIME = 1, 6


def packet(*fields: Field) -> bytes:
    """A packet of the trace (``Trace.packet``)."""
    return message((1, message(*fields)))


def clock_packet(unix_ns: int) -> bytes:
    """The trace's time 0 (which is that of the boot clock) is this Unix time."""
    clocks = [message((1, clock), (2, time)) for clock, time in ((_BOOTTIME, 0), (_REALTIME, unix_ns))]
    return packet((8, 0), (10, SEQUENCE), (6, message(*((1, clock) for clock in clocks))))


def names_packets(tables: Iterable[tuple[int, Iterable[str]]]) -> Iterable[bytes]:
    """The texts that slices name by number (1, 2, ...): field of ``InternedData``, and its texts; some thousand a packet."""
    flags = _CLEARED
    for field, texts in tables:
        entries = [(field, message((1, i), (2, text))) for i, text in enumerate(texts, 1)]
        for first in range(0, len(entries), 4096):
            data = message(*entries[first : first + 4096])
            yield packet((10, SEQUENCE), (13, flags | _NEEDS_STATE if flags == 0 else flags), (12, data))
            flags = 0


def track_packet(*fields: Field) -> bytes:
    """A ``TrackDescriptor``."""
    return packet((10, SEQUENCE), (60, message(*fields)))
