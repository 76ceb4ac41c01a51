"""_core.pyi says what the native module has, no more and no less."""

from __future__ import annotations

import ast
from pathlib import Path

from cuptiprof import _core


def members(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    out: dict[str, ast.stmt] = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            out[node.name] = node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            out[node.target.id] = node
    return out


def test_the_stub_and_the_module_agree() -> None:
    import cuptiprof

    stub = members(ast.parse((Path(cuptiprof.__file__).parent / "_core.pyi").read_text()).body)
    native = {n for n in dir(_core) if not n.startswith("__")}
    assert set(stub) == native
    for name, node in stub.items():
        if not isinstance(node, ast.ClassDef):
            continue
        declared = {n for n in members(node.body) if n != "__init__"}
        cls = getattr(_core, name)
        own = {n for n in vars(cls) if not n.startswith("__") or n in declared}
        assert declared <= {*own, *dir(cls)}, name
        assert {n for n in own if not n.startswith("_")} <= declared, name
