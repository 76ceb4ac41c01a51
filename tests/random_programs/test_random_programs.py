"""A part of what CI runs: ``python -m random_programs --programs 2000`` in ``tests``."""

from __future__ import annotations

import pytest

import cuptiprof

from . import surroundings
from .programs import make
from .runner import run


@pytest.mark.filterwarnings("ignore")
def test_random_programs_over_the_public_surface() -> None:
    assert run(seed=1, numbers=range(100)) == 100


def test_a_program_is_made_by_its_number_alone() -> None:
    assert make(1, 17) == make(1, 17) != make(2, 17)


def test_the_collector_s_threads_go_by_its_name_and_go() -> None:
    """What the programs look for when they look for threads that stayed; `top -H` shows the names, too."""
    with cuptiprof.profile(device="sim"):
        assert surroundings.settles(lambda: -surroundings.collecting_threads(), -1)
    assert surroundings.settles(surroundings.collecting_threads, 1)  # the result's tables may have one
