"""A part of what CI runs: ``python -m random_programs --programs 2000`` in ``tests``."""

from __future__ import annotations

import pytest

from .programs import make
from .runner import run


@pytest.mark.filterwarnings("ignore")
def test_random_programs_over_the_public_surface() -> None:
    assert run(seed=1, numbers=range(100)) == 100


def test_a_program_is_made_by_its_number_alone() -> None:
    assert make(1, 17) == make(1, 17) != make(2, 17)
