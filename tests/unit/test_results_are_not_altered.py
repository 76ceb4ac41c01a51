"""Results around the same tables."""

from __future__ import annotations

from report_results import training_step

from cuptiprof.data.result import Result
from cuptiprof.data.tables import Table


def test_a_result_does_not_alter_the_tables_that_it_is_given() -> None:
    first = training_step()
    kernels, configs = first.tables["kernels"], first.tables["launch_configs"]
    grid = kernels["grid_x"].tolist()
    second = Result({"kernels": kernels, "launch_configs": Table.empty("launch_configs", kernels.strings)})
    assert kernels.configs is configs and second.tables["kernels"].configs is second.tables["launch_configs"]
    third = Result({"kernels": kernels})  # with the configurations that it has
    assert third.kernels["grid_x"].tolist() == kernels["grid_x"].tolist() == grid
    assert first.kernels is kernels and third.launch_configs is configs
