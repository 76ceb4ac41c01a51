"""What a test profiles, and where that is saved."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from cuptiprof.errors import ResultError
from cuptiprof.filter.kernel_filter import KernelFilter
from cuptiprof.integrations.run_names import local_folder, run_place
from cuptiprof.session.profile import profile
from cuptiprof.text.names import display_name
from cuptiprof.torch_profiler.torch_options import check_keywords


class SavedRuns:
    """The folder that ``--cuptiprof-save`` names.

    Attributes:
        paths: of what this run of pytest has saved.
    """

    def __init__(self, folder: str) -> None:
        """Raises pytest.UsageError: nothing can be saved there."""
        try:
            self.folder = local_folder(folder)
        except ResultError as e:
            raise pytest.UsageError(f"--cuptiprof-save: {e}") from None
        self.paths: list[str] = []

    def keep(self, block: ProfiledBlock, nodeid: str) -> None:
        """Save what a test has collected."""
        result = block.result()
        result.metadata["test"] = nodeid
        place = run_place(self.folder, nodeid.replace("::", "-"), 0, 1)
        place.write(result, bar=False)
        self.paths.append(place.path)


class ProfiledBlock(profile):
    """A session of a test: ``cuptiprof.profile``, which can say what was launched."""

    def launches(self, kernels: str | KernelFilter = "*") -> Counter[str]:
        """Kernel -> how often it was launched, by name as reports show it; of those that match.

        Raises:
            SessionError: the block has not ended. FilterError: a pattern that cannot be understood.
        """
        return Counter(display_name(name) for name in self.result().filter(kernels).kernels["name"].tolist())


class ProfileFixture:
    """What a test calls; it may do so several times, one after the other."""

    def __init__(self, nodeid: str, runs: SavedRuns | None) -> None:
        self._nodeid, self._runs = nodeid, runs
        self._blocks: list[ProfiledBlock] = []

    def __call__(self, **options: Any) -> ProfiledBlock:
        """
        Args:
            options: those of ``cuptiprof.profile``.

        Raises:
            TypeError, CuptiprofError: one that is no such thing.
        """
        check_keywords(options, profile.__init__)
        block = ProfiledBlock(**options)
        self._blocks.append(block)
        return block

    def end(self) -> None:
        """The test is over: what it has left running ends, what it has collected is saved."""
        for block in self._blocks:
            if block.state not in ("idle", "stopped"):
                block.stop()
        if self._runs is not None:
            for block in self._blocks:
                if block.state == "stopped":
                    self._runs.keep(block, self._nodeid)
