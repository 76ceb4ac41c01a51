"""A session that a training framework begins and ends: its regions, its steps, its saved runs and its report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError, SessionError
from cuptiprof.integrations.run_names import local_folder, run_place
from cuptiprof.regions.region import region
from cuptiprof.report import VIEWS, make_report
from cuptiprof.session.profile import profile
from cuptiprof.session.schedule import Action
from cuptiprof.text.nearest import nearest
from cuptiprof.torch_profiler.torch_options import check_keywords


class TrainerSession:
    """One for each trainer; it may begin and end any number of times, one after the other.

    Attributes:
        result: of the last session or cycle that has ended; None: none has.
        saved: where the runs of the session lie.
        facts: what goes into the metadata of its results.
    """

    def __init__(self, view: str | Iterable[str] | None, options: dict[str, Any]) -> None:
        """
        Args:
            view: what the report shows, None: there is none.
            options: those of ``cuptiprof.profile``.

        Raises:
            TypeError, CuptiprofError: an option that is no such thing: now, not when the training has begun.
        """
        self._views = [] if view is None else [view] if isinstance(view, str) else list(view)
        for name in self._views:
            if name not in VIEWS:
                near = nearest(str(name), VIEWS)
                hint = f"did you mean {near[0]!r}?" if near else f"one of: {', '.join(VIEWS)}"
                raise ResultError(f"unknown view {name!r}", hint=hint)
        self._on_ready: Callable[[profile], object] | None = options.pop("on_ready", None)
        check_keywords(options, profile.__init__)
        cycles = options.get("schedule")
        if cycles is not None and not isinstance(cycles(0), Action):
            raise SessionError(
                f"schedule= gives {cycles(0)!r}",
                hint="cuptiprof.schedule(...) takes the arguments of torch.profiler.schedule",
            )
        self._options = {"progress": False, **options}  # frameworks draw bars of their own
        profile(**self._options)
        self._profile: profile | None = None  # made when it begins: until then this is copied to other processes
        self._regions: list[tuple[str, region]] = []
        self._folder: str | None = None
        self.facts: dict[str, Any] = {}
        self._name, self._rank, self._ranks = "", 0, 1
        self._pid = 0
        self.result: Result | None = None
        self.saved: list[str] = []

    @property
    def is_running(self) -> bool:
        """It has begun, in this process, and not ended."""
        return self._profile is not None and self._pid == os.getpid()

    def begin(
        self, name: str, folder: str | os.PathLike[str] | None, *, rank: int = 0, ranks: int = 1, **facts: Any
    ) -> None:
        """Start; one that runs is ended first.

        Args:
            name: of the stage, for the names of saved runs.
            folder: where runs are saved; None: nowhere.
            facts: see the attribute.

        Raises:
            ResultError: nothing can be saved there. CuptiprofError: as ``profile.start``.
        """
        self.end()
        self._folder = local_folder(folder) if folder is not None else None
        self._name, self._rank, self._ranks, self.facts = name, rank, ranks, facts
        self._pid = os.getpid()
        self.result, self.saved = None, []
        session = profile(**self._options, on_ready=self._keep)
        session.start()
        self._profile = session

    def enter(self, name: str) -> None:
        """A region begins."""
        if self.is_running:
            entered = region(name)
            entered.__enter__()
            self._regions.append((name, entered))

    def leave(self, *names: str) -> None:
        """The innermost regions of these names end, where there are any."""
        if not self.is_running:
            return
        for name in names:
            at = next((i for i in reversed(range(len(self._regions))) if self._regions[i][0] == name), None)
            if at is not None:
                self._regions.pop(at)[1].__exit__(None, None, None)

    def step(self) -> None:
        """A training step ends."""
        if self.is_running:
            assert self._profile is not None
            before = self._profile.state
            self._profile.step()
            if before == "armed" and self._profile.state == "running":
                self._enter_again()

    def _enter_again(self) -> None:
        """A session that begins with a later step does not know of what was open before."""
        names = [name for name, _ in self._regions]
        self.leave(*reversed(names))
        for name in names:
            self.enter(name)

    def end(self) -> None:
        """Stop, and keep the result; nothing if it does not run. What cannot be saved where it was to be is saved elsewhere, and
        said."""
        if not self.is_running:
            return
        assert self._profile is not None
        while self._regions:
            self._regions.pop()[1].__exit__(None, None, None)
        session = self._profile
        session.__exit__(None, None, None)
        self._profile = None
        self.result = session.result()

    def last(self) -> Result:
        """The result; one that runs is ended first.

        Raises:
            SessionError: there is none.
        """
        self.end()
        if self.result is None:
            raise SessionError("there is no result yet", hint="it begins with the trainer's own work, such as fit()")
        return self.result

    def report(self, *, for_file: bool = False) -> str:
        """The views that were asked for, and where the runs lie; empty if no result came or no view was asked for.

        Args:
            for_file: nothing is cut; else it fits the terminal, where there is one.
        """
        if self.result is None or not self._views:
            return ""
        reports = [make_report(self.result, view) for view in self._views]
        texts = [report.to("text") if for_file else str(report) for report in reports]
        return "\n".join([*texts, *(f"saved: {path}" for path in self.saved)])

    def _keep(self, session: profile) -> None:
        """A cycle, or all of it, has ended."""
        self.result = result = session.result()
        result.metadata.update(self.facts)
        if self._ranks > 1:
            result.metadata["rank"] = self._rank
        if self._folder is not None:
            place = run_place(self._folder, self._name, self._rank, self._ranks)
            if place.write_or_beside(result):
                self.saved.append(place.path)
        if self._on_ready is not None:
            self._on_ready(session)
