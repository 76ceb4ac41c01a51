"""Hugging Face Transformers: ``Trainer(callbacks=[ProfilerCallback(...)])``. See docs/integrations.md."""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import TracebackType
from typing import Any

from cuptiprof.data.result import Result
from cuptiprof.errors import CuptiprofError
from cuptiprof.integrations.trainer_session import TrainerSession
from cuptiprof.io.at_exit import before_exit
from cuptiprof.job.launcher import place_in_job

try:
    from transformers import TrainerCallback
except ImportError as missing:
    raise CuptiprofError(f"there is no Trainer: {missing}", hint="pip install 'transformers[torch]'") from None


class ProfilerCallback(TrainerCallback):  # type: ignore[misc]  # transformers is optional and not followed
    """Profiles each ``train()``: regions ``epoch``, ``step`` (an update), ``micro_batch`` (forward, backward, and in the last of a step gradient
    clipping), ``optimizer_step`` and ``evaluate``; a step ends with each update.

    When the training ends the report is printed by the main process, and the run saved. The Trainer tells callbacks of no exception:
    a session that one has left open ends with the next training, with ``result()``, or with the program; at once as a context manager, which
    also profiles what is no training:

        with ProfilerCallback(folder="runs") as gpu:
            Trainer(..., callbacks=[gpu]).evaluate()  # steps are its batches

    Args:
        folder: where runs are saved, ``FOLDER/train.cuptiprof`` (of several ranks ``train-rank0.cuptiprof``, ...). Default: nowhere; the Trainer's
            own folder may go to the hub.
        view: what is printed: one of ``Result.report``'s views, several, or None.
        options: those of ``cuptiprof.profile`` (device, kernels, metrics, schedule, sources, on_ready, ...).

    Raises:
        TypeError, CuptiprofError: an option that is no such thing. When the training begins: as ``profile.start``; ResultError: nothing
        can be saved there.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        view: str | Iterable[str] | None = "overview",
        **options: Any,
    ) -> None:
        self._folder = folder
        self._session = TrainerSession(view, options)
        self._is_block = False  # of `with`, which begins and ends the session
        self._is_training = False
        self._prints = True

    def result(self) -> Result:
        """What the last training, or the last cycle of a schedule, collected. One that runs is ended.

        Raises:
            SessionError: there was none.
        """
        self.end()
        return self._session.last()

    @property
    def saved(self) -> list[str]:
        """Where the runs of the last session lie."""
        return list(self._session.saved)

    def end(self) -> None:
        """End the session, where one runs, and print the report."""
        if self._session.is_running:
            self._session.end()
            if self._prints and (report := self._session.report()):
                print(report)

    def __enter__(self) -> ProfilerCallback:
        place = place_in_job(os.environ)
        self._begin("run", place.get("rank", 0), place.get("world_size", 1))
        self._is_block = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._is_block = False
        self.end()

    def _begin(self, name: str, rank: int, ranks: int) -> None:
        self.end()
        self._session.begin(name, self._folder, rank=rank, ranks=ranks, framework="transformers", stage=name)
        self._prints = rank == 0
        before_exit(self)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._is_training = True
        if self._is_block:
            self._session.leave("evaluate", "micro_batch", "step", "epoch")  # of a training that an exception ended
        else:
            self._begin("train", args.process_index, args.world_size)
        if state.global_step:  # resumed: steps are counted from here
            self._session.facts["first_step"] = state.global_step

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._is_training = False
        if not self._is_block:
            self.end()

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._session.enter("epoch")

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._session.leave("micro_batch", "step", "epoch")
        self._expect_evaluation(control)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._session.leave("evaluate")  # expected, and not come
        self._session.enter("step")
        self._session.enter("micro_batch")

    def on_substep_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._session.leave("micro_batch")
        self._session.enter("micro_batch")

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._session.leave("micro_batch")
        self._session.enter("optimizer_step")

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._session.leave("optimizer_step")

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._session.leave("micro_batch", "step")
        self._session.step()
        self._expect_evaluation(control)

    def on_prediction_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if not self._is_training:
            self._session.step()

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._session.leave("evaluate")

    def _expect_evaluation(self, control: Any) -> None:
        """No event says that an evaluation begins: it comes next, after a log, where the Trainer has been told to make one."""
        if control.should_evaluate:
            self._session.enter("evaluate")
