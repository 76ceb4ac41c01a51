"""Hugging Face Accelerate: ``accelerator.profile(ProfileKwargs(...))``, with this one instead of ``accelerate.utils``'. See docs/integrations.md."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from cuptiprof.errors import CuptiprofError
from cuptiprof.integrations.run_names import local_folder, run_place
from cuptiprof.session.schedule import schedule
from cuptiprof.torch_profiler.torch_profile import TorchProfile

try:
    from accelerate import PartialState
    from accelerate.utils import ProfileKwargs as OfAccelerate
except ModuleNotFoundError as missing:
    raise CuptiprofError(f"there is no Accelerate: {missing}", hint="pip install accelerate") from None


class ProfileKwargs(OfAccelerate):  # type: ignore[misc]  # Accelerate is optional and not followed
    """Accelerate's ``ProfileKwargs``, its arguments and their meaning, for ``Accelerator(kwargs_handlers=[...])`` or ``accelerator.profile(...)``;
    what ``with accelerator.profile() as prof:`` gives is a ``cuptiprof.torch_profiler.profile``.

    Args:
        activities: "cpu", "cuda", or both (the default).
        schedule_option: arguments of ``cuptiprof.schedule``.
        on_trace_ready: called with the session after each cycle, or at the end of the block without a schedule.
        record_shapes, profile_memory, with_stack, with_flops, with_modules: torch.profiler's.
        output_trace_dir: where Accelerate writes ``profile_RANK.json``.
        folder: save runs there, ``profile.cuptiprof`` or of several ranks ``profile-rank0.cuptiprof``, ...; also after an exception.
        options: those of ``cuptiprof.profile`` (device, kernels, metrics, sources, ...).

    Raises:
        TypeError, CuptiprofError: an option that is no such thing. When the block begins: as ``profile.start``; ResultError: nothing can
        be saved there.
    """

    def __init__(
        self,
        activities: Iterable[str] | None = None,
        schedule_option: dict[str, int] | None = None,
        on_trace_ready: Callable[[Any], object] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        output_trace_dir: str | None = None,
        *,
        folder: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            activities=None if activities is None else list(activities),
            schedule_option=schedule_option,
            on_trace_ready=on_trace_ready,
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            output_trace_dir=output_trace_dir,
        )
        self._folder = folder
        self._options = options
        self._session(None)  # says what cannot be

    @property
    def __class__(self) -> Any:
        """Accelerate looks handlers up by exactly its own class, and knows nothing of those derived from it."""
        return OfAccelerate

    @__class__.setter
    def __class__(self, value: Any) -> None:
        raise TypeError("the class of a ProfileKwargs stays what it is")

    def build(self) -> TorchProfile:
        """The session of one ``accelerator.profile()``, which Accelerate starts and stops."""
        if self._folder is None:
            return self._session(self.on_trace_ready)
        folder = local_folder(self._folder)
        state = PartialState()

        def keep(session: TorchProfile) -> None:
            result = session.result()
            result.metadata["framework"] = "accelerate"
            if state.num_processes > 1:
                result.metadata["rank"] = state.process_index
            run_place(folder, "profile", state.process_index, state.num_processes).write_or_beside(result)
            if self.on_trace_ready is not None:
                self.on_trace_ready(session)

        return self._session(keep)

    def _session(self, ready: Callable[[Any], object] | None) -> TorchProfile:
        given = self.activities
        return TorchProfile(
            activities=None if given is None else [self._get_profiler_activity(name) for name in given],
            schedule=schedule(**self.schedule_option) if self.schedule_option is not None else None,
            on_trace_ready=ready,
            record_shapes=self.record_shapes,
            profile_memory=self.profile_memory,
            with_stack=self.with_stack,
            with_flops=self.with_flops,
            with_modules=self.with_modules,
            **self._options,
        )
