"""The page's sections, in order."""

from __future__ import annotations

from collections.abc import Callable

from cuptiprof.data.result import Result
from cuptiprof.page.section import Section
from cuptiprof.page.sections import (
    flame_section,
    kernel_time_section,
    memory_section,
    occupancy_section,
    over_time_section,
    report_tables,
    roofline_section,
    step_section,
    timeline_section,
)

SECTIONS: tuple[Callable[[Result], Section | None], ...] = (
    report_tables.overview,
    report_tables.advice,
    timeline_section.timeline,
    step_section.step_times,
    report_tables.steps,
    report_tables.kernels,
    kernel_time_section.kernel_times,
    flame_section.flame,
    report_tables.operators,
    report_tables.modules,
    report_tables.regions,
    report_tables.gpus,
    over_time_section.over_time,
    occupancy_section.occupancy,
    report_tables.system,
    report_tables.idle,
    report_tables.critical_path,
    report_tables.shapes,
    report_tables.copies,
    report_tables.communication,
    memory_section.memory,
    report_tables.memory,
    roofline_section.roofline_chart,
    report_tables.counters,
    report_tables.captures,
    report_tables.profile,
)
"""Each is given a result of which the work without times is left out, and gives None where there is nothing to show."""
