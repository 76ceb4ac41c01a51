"""cuptiFinalize of NVIDIA's own libcupti 13.0 where there is no driver: an error, and the library still works."""

from __future__ import annotations

import struct

import pytest

from cuptiprof import _core
from cuptiprof.data.activities import kinds_of
from cuptiprof.errors import CuptiError, SessionError

pytest_plugins = ["nvidia_libraries"]

API, API_BYTES = 5, 40


def test_without_a_driver_it_is_an_error_and_harmless(cupti_13_0: str, no_driver: None) -> None:
    library = _core.load_cupti(cupti_13_0, "test")
    for _ in range(3):
        with pytest.raises(CuptiError) as e:
            library.finalize()
        assert (e.value.code, e.value.call) == (999, "cuptiSubscribe")
        # Still there: it answers, and reads records.
        assert library.version >= 130000
        assert library.timestamp() > 0
        assert library.record_kinds(struct.pack("<I", API) + bytes(API_BYTES - 4), API_BYTES) == [(API, 0)]


def test_a_session_that_never_started_cannot_finalize(cupti_13_0: str, no_driver: None) -> None:
    library = _core.load_cupti(cupti_13_0, "test")
    session = _core.Session(api=library, kinds=kinds_of(None), keep="latest", budget=32 << 20)
    with pytest.raises(SessionError, match="idle"):
        session.finalize()
    with pytest.raises(CuptiError):
        session.start()
    with pytest.raises(SessionError, match="idle"):
        session.finalize()
