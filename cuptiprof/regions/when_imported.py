"""Doing something as soon as the program imports a module, without importing it."""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any


class WhenImported:
    """From :meth:`wait` on first on ``sys.meta_path``, until the module is imported; the other finders import it, and then `imported` is
    called with it."""

    def __init__(self, name: str, imported: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._imported = imported

    def wait(self) -> None:
        """Begin. Whoever calls has seen to :meth:`remove` before: Ctrl-C may come in between."""
        sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self._name:
            return None
        self.remove()
        found = (finder.find_spec(name, path, target) for finder in [*sys.meta_path])
        spec = next((s for s in found if s is not None), None)
        loader: Any = spec.loader if spec is not None else None
        if loader is None:
            return None
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            self._imported(module)

        loader.exec_module = exec_module
        return spec

    def remove(self) -> None:
        """It waits no more."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
