"""The paths of PyTorch's modules, for launches that were made from them. torch is never imported here."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import CodeType, ModuleType
from typing import Any

import numpy as np

from cuptiprof import _core
from cuptiprof.data.tables import Array, Table
from cuptiprof.errors import SessionError
from cuptiprof.regions.when_imported import WhenImported

UNATTRIBUTED = "(unattributed)"
"""What a module is called of which it is not known, or not sure, where it was."""

_WHERE = "torch.nn.modules.module"
_CHECKPOINTS = "torch.utils.checkpoint"
_HINT = 'leave "modules" out of sources=; docs/pytorch-modules.md says which versions can be followed'


class TorchModules:
    """Inside, launches know the module that they are made from: by the frames of ``torch.nn.Module._wrapped_call_impl``, which
    every call of a module goes through, and the class tells of the death of its objects (a ``__del__`` of ours).

    Raises (on entry):
        SessionError: the modules of this torch cannot be followed.
    """

    def __init__(self) -> None:
        self._waiting = [WhenImported(_WHERE, self._imported), WhenImported(_CHECKPOINTS, _watch_recomputing)]

    def __enter__(self) -> TorchModules:
        for name, waiting, imported in zip(
            (_WHERE, _CHECKPOINTS), self._waiting, (self._imported, _watch_recomputing), strict=True
        ):
            module = sys.modules.get(name)
            if module is None:
                waiting.wait()
            else:
                imported(module)
        return self

    def _imported(self, torch: ModuleType) -> None:
        _core.watch_modules(torch.Module, call_of_modules(torch.Module))

    def __exit__(self, *_: object) -> None:
        for waiting in self._waiting:
            waiting.remove()
        _core.unwatch_modules()

    def started(self) -> None:
        """The session has begun: the modules that are there get their names."""
        if _WHERE in sys.modules:
            _core.name_living_modules()

    def step(self) -> None:
        """The end of a training step: what is new gets its name, before it can move."""
        if _core.has_nameless_modules():
            _core.name_living_modules()

    def names(self) -> dict[int, str]:
        """Path by number, of the modules whose place is sure, now that all is launched."""
        _core.name_living_modules()
        return _core.module_names()


def _watch_recomputing(checkpoints: ModuleType) -> None:
    """What a checkpoint computes again is asked for by a node of backward that may be another module's than the function is."""
    initial = getattr(getattr(checkpoints, "_checkpoint_hook", None), "__init__", None)
    for code in getattr(getattr(initial, "__code__", None), "co_consts", ()):
        if isinstance(code, CodeType) and code.co_name == "unpack_hook":
            _core.watch_recomputing(code)


def call_of_modules(module_class: Any) -> CodeType:
    """The code whose frames are calls of modules, tried once.

    Raises:
        SessionError: there is none of that kind, or what is read of its frames is not the module.
    """
    call: Any = getattr(module_class, "_wrapped_call_impl", None)
    code: Any = getattr(call, "__code__", None)
    if not isinstance(code, CodeType) or not code.co_argcount or code.co_varnames[0] in code.co_cellvars:
        raise SessionError("this PyTorch calls its modules in a way that is not known", hint=_HINT)
    if "__del__" in vars(module_class):
        raise SessionError("torch.nn.Module has a __del__ of its own", hint=_HINT)
    if not _core.can_read_frames() or not _is_read(call, code):
        raise SessionError("the modules of this PyTorch cannot be read from Python's frames", hint=_HINT)
    return code


def _is_read(call: Any, code: CodeType) -> bool:
    class Tried:
        _compiled_call_impl = None

        def _call_impl(self) -> int:
            return _core.read_module(code)

    tried = Tried()
    return bool(call(tried) == id(tried))


def put_names(tables: dict[str, Table], names: Mapping[int, str]) -> None:
    """The paths of modules in the place of the numbers that the native session wrote ("(module 7)")."""
    strings = tables["kernels"].strings
    code_of = np.arange(len(strings), dtype=np.uint32)
    found = [(code, text) for code, text in enumerate(strings) if text.startswith("(module ")]
    for code, text in found:
        number = text[len("(module ") : -1]
        name = names.get(int(number), UNATTRIBUTED) if number.isdigit() else UNATTRIBUTED
        code_of[code] = strings.code(name)
    if not found:
        return

    def named(table: Table) -> Array:
        return code_of[table.codes("module")]

    for name, table in tables.items():
        if "module" in table.column_names:
            tables[name] = table.with_column("module", named)
