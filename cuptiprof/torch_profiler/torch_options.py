"""torch.profiler's options as ``cuptiprof.profile`` has them, and those that are refused."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from cuptiprof.errors import SessionError
from cuptiprof.session.profile import profile
from cuptiprof.session.sources import SourcesArgument
from cuptiprof.text.nearest import ALIKE, nearest

_CONFIG = ("profiler_metrics", "profiler_measure_per_kernel")
"""The first fields of torch's _ExperimentalConfig, as it pickles itself, in every torch since 2.4."""


def check_keywords(given: Mapping[str, Any], own: Any) -> None:
    """Say what a keyword that nobody has may have been meant as.

    Raises:
        TypeError: there is one.
    """
    known = [name for f in (own, profile.__init__) for name in inspect.signature(f).parameters if name != "self"]
    for name in given:
        if name not in known:
            near = nearest(name, known, 1, alike=ALIKE)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"profile() got an unexpected keyword argument {name!r}{hint}")


def sources_with(
    sources: SourcesArgument, *, operators: bool, shapes: bool, stacks: bool, modules: bool
) -> SourcesArgument:
    """The user's own ``sources=``, and what torch's options ask for."""
    wanted: dict[str, Any] = {}
    if operators:
        wanted["operators"] = {"level": "full", "shapes": True} if shapes else "full"
    if stacks:
        wanted["stacks"] = ""
    if modules:
        wanted["modules"] = ""
    if sources is None:
        return wanted or None
    if isinstance(sources, Mapping):
        return {**wanted, **sources}
    named = [sources] if isinstance(sources, str) else list(sources)
    return {**wanted, **{name: wanted.get(name, "") for name in named}}


def counters_of(config: Any) -> dict[str, Any]:
    """``metrics=`` and ``strategy=`` for torch's ``experimental_config``.

    Raises:
        SessionError: it asks for what is not there.
    """
    if config is None:
        return {}
    state = config.__getstate__() if hasattr(config, "__getstate__") else None
    if not isinstance(state, tuple) or len(state) < len(_CONFIG):
        raise SessionError(
            f"experimental_config={config!r} cannot be read", hint="metrics= and strategy= of cuptiprof.profile"
        )
    names = [name.decode() if isinstance(name, bytes) else str(name) for name in state[0]]
    if not names:
        return {}
    metrics = [_KINETO_METRICS.get(name, name) for name in names]
    return {"metrics": metrics, "strategy": "replay" if state[1] else "range"}


_KINETO_METRICS = {
    "kineto__cuda_core_flops": "flop_count_sp",
    "kineto__tensor_core_insts": "sm__inst_executed_pipe_tensor.sum",
}
"""What Kineto computes from several counters."""
