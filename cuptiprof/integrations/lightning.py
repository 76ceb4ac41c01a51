"""PyTorch Lightning: ``Trainer(profiler=LightningProfiler(...))``, of ``lightning`` or ``pytorch_lightning``.

Lightning's actions are regions under Lightning's own names, its batches are steps. See docs/integrations.md.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

from cuptiprof.data.result import Result
from cuptiprof.errors import CuptiprofError
from cuptiprof.integrations.trainer_session import TrainerSession
from cuptiprof.io.at_exit import before_exit

# Whichever the program uses. They are two copies of the same code, and a trainer of one takes profilers of the other.
try:
    if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
        raise ModuleNotFoundError
    from lightning.pytorch.callbacks import Callback
    from lightning.pytorch.profilers import Profiler
except ModuleNotFoundError:
    try:
        from pytorch_lightning.callbacks import Callback
        from pytorch_lightning.profilers import Profiler
    except ModuleNotFoundError as missing:
        raise CuptiprofError(
            f"there is no Lightning: {missing}", hint="pip install lightning, or pytorch-lightning"
        ) from None

_EVALUATING = ("validate", "test", "predict")
_EVALUATION_STEPS = (".validation_step", ".test_step", ".predict_step")


class LightningProfiler(Profiler):  # type: ignore[misc]  # Lightning is optional and not followed
    """A profiler of Lightning's, from the beginning of ``fit``, ``validate``, ``test`` or ``predict`` to its end, or an exception.

    Each action of Lightning's is a region of its name (``run_training_batch``, ``[Strategy]SingleDeviceStrategy.training_step``, ...), those of
    ``self.trainer.profiler.profile("mine")`` too. A step ends with each training batch, outside of ``fit`` with each batch. The report comes
    where Lightning's profilers have theirs: in its log, or with ``filename`` in a file.

    Args:
        dirpath: folder of the report's file and of the saved runs; default: the trainer's ``log_dir``.
        filename: write the report to ``DIRPATH/STAGE-FILENAME.txt`` rather than to the log.
        view: what the report shows: one of ``Result.report``'s views, several, or None.
        save: save a run ``DIRPATH/STAGE.cuptiprof`` (of several ranks ``STAGE-rank0.cuptiprof``, ...) at the end and after each cycle of a schedule.
        options: those of ``cuptiprof.profile`` (device, kernels, metrics, schedule, sources, on_ready, ...).

    Raises:
        TypeError, CuptiprofError: an option that is no such thing. When a stage begins: as ``profile.start``; ResultError: nothing can
        be saved there.
    """

    def __init__(
        self,
        dirpath: str | os.PathLike[str] | None = None,
        filename: str | None = None,
        *,
        view: str | Iterable[str] | None = "overview",
        save: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(dirpath=dirpath, filename=filename)
        self._save = save
        self._session: TrainerSession | None = None  # teardown comes also to what was not made: Lightning's __del__
        self._session = TrainerSession(view, options)
        self._lightning_module: Any = None  # Lightning sets it before setup

    @property
    def saved(self) -> list[str]:
        """Where the runs of the last stage lie."""
        return [] if self._session is None else list(self._session.saved)

    def result(self) -> Result:
        """What the last stage, or the last cycle of a schedule, collected. A stage that runs is ended.

        Raises:
            SessionError: there was none.
        """
        assert self._session is not None
        return self._session.last()

    def setup(self, stage: str, local_rank: int | None = None, log_dir: str | None = None) -> None:
        """A stage begins."""
        super().setup(stage, local_rank, log_dir)
        trainer = getattr(self._lightning_module, "_trainer", None)  # the public one raises where there is none
        if trainer is not None and not any(getattr(c, "profiler", None) is self for c in trainer.callbacks):
            trainer.callbacks.append(_Exceptions(self))
        assert self._session is not None
        name = _plain(stage)
        self._session.begin(
            f"{name}-{self.filename}" if self.filename else name,
            (self.dirpath or os.curdir) if self._save else None,
            rank=getattr(trainer, "global_rank", 0),
            ranks=getattr(trainer, "world_size", 1),
            framework=Profiler.__module__.partition(".profilers")[0],
            stage=name,
        )
        before_exit(self._session)

    def start(self, action_name: str) -> None:
        """An action begins."""
        if self._session is not None:
            self._session.enter(action_name)

    def stop(self, action_name: str) -> None:
        """An action ends."""
        if self._session is None:
            return
        self._session.leave(action_name)
        if action_name == "run_training_batch" or (
            _plain(self._stage) in _EVALUATING
            and action_name.startswith("[Strategy]")
            and action_name.endswith(_EVALUATION_STEPS)
        ):
            self._session.step()

    def summary(self) -> str:
        """The report; a stage that runs is ended."""
        assert self._session is not None
        self._session.end()
        report = self._session.report(for_file=self.filename is not None)
        return f"{_plain(self._stage).upper()} Profiler Report\n\n{report}" if report else ""

    def teardown(self, stage: str | None) -> None:
        """A stage ends."""
        if self._session is not None:
            self._session.end()
        super().teardown(stage=stage)


class _Exceptions(Callback):  # type: ignore[misc]
    """Lightning tells profilers of no exception, but callbacks."""

    def __init__(self, profiler: LightningProfiler) -> None:
        self.profiler = profiler

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.profiler.describe()


# Hooks that are nothing Lightning does not call: no region for each of them, in each batch.
for _hook in [n for n in vars(Callback) if n.startswith("on_") or n in ("setup", "teardown")]:
    if _hook not in ("on_exception", "on_save_checkpoint", "on_load_checkpoint"):
        setattr(_Exceptions, _hook, None)


def _plain(stage: Any) -> str:
    """Of Lightning's enumeration."""
    return str(getattr(stage, "value", stage) or "")
