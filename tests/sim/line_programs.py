"""Programs of nested Python code that launch kernels from everywhere and note where, for the tests of lines and stacks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from hypothesis import strategies as st

from cuptiprof.sim.sim_device import Op, SimDevice

Place = tuple[str, str, int]  # file, function, line

# Its frame is of an installed package: what a program calls to launch is not the program's own.
_PACKAGE = "/opt/env/lib/python3/site-packages/launcher.py"
_LAUNCHER = """
def LAUNCH(*_):
    truth.append(where(sys._getframe(1)))
    call(KERNEL, name=f"{prefix}{len(truth) - 1}")
    return 0
"""


def said(frame: FrameType | None) -> list[Place]:
    """What Python says of a frame and its callers, the innermost first."""
    out = []
    while frame is not None:
        code = frame.f_code
        names = [n.encode("utf-8", "backslashreplace").decode() for n in (code.co_filename, qualified_name(code))]
        out.append((names[0], names[1], frame.f_lineno or 0))
        frame = frame.f_back
    return out


def qualified_name(code: CodeType) -> str:
    return str(getattr(code, "co_qualname", code.co_name))


class Launcher:
    """``LAUNCH`` for a program: it launches a kernel whose name says which entry of ``truth`` tells where."""

    def __init__(self, prefix: str = "k") -> None:
        self.truth: list[list[Place]] = []
        self._device = SimDevice()
        scope: dict[str, Any] = {
            "prefix": prefix,
            "sys": sys,
            "truth": self.truth,
            "where": said,
            "call": self._device.call,
            "KERNEL": Op.KERNEL,
        }
        exec(compile(_LAUNCHER, _PACKAGE, "exec"), scope)
        self.launch: Callable[..., int] = scope["LAUNCH"]


def _indented(block: list[str]) -> list[str]:
    return ["    " + line for line in block]


@st.composite
def blocks(draw: Any, depth: int = 3) -> list[str]:
    """Lines of statements that launch."""
    out: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        out += [""] * draw(st.integers(0, 2)) + draw(_statement(depth))
    return out


@st.composite
def _statement(draw: Any, depth: int) -> list[str]:
    simple = ["call", "wide", "lambda", "comprehension", "sorted", "map", "del", "dict"]
    nested = ["function", "generator", "coroutine", "class", "thread", "exec", "recursion", "try", "with", "closure"]
    kind = draw(st.sampled_from(simple if depth == 0 else simple + nested))
    if kind in _SIMPLE:
        return list(_SIMPLE[kind])
    body = draw(blocks(depth=depth - 1))
    if kind == "exec":
        name = draw(st.sampled_from(["<generated>", "weird\nname.py", "\u00e9\u4e2d\U0001f600.py", "\udc80.py"]))
        return [f"exec(compile({chr(10).join(body)!r}, {name!r}, 'exec'), globals())"]
    return _NESTED[kind](_indented(body))


_SIMPLE = {
    "call": ["LAUNCH()"],
    "wide": ["x = (1,", "     LAUNCH(),", "     [LAUNCH(", "         LAUNCH()),", "     ])"],
    "lambda": ["(lambda: LAUNCH())()"],
    "comprehension": ["[LAUNCH() for _ in range(2)]", "list(LAUNCH()", "     for _ in range(2))"],
    "sorted": ["sorted([3, 1], key=lambda x:", "       LAUNCH())"],
    "map": ["list(map(LAUNCH, range(2)))"],
    "dict": ["{i: LAUNCH() for i in {LAUNCH() for _ in range(1)}}"],
    "del": ["class D:", "    def __del__(self):", "        LAUNCH()", "D()"],
}
_NESTED: dict[str, Callable[[list[str]], list[str]]] = {
    "function": lambda body: ["def f():", *body, "f()"],
    "closure": lambda body: [
        "def outer(y=1):",
        "    def f():",
        "        y",
        *_indented(body),
        "    return f",
        "outer()()",
    ],
    "generator": lambda body: ["def g():", *body, "    yield 1", "    yield from iter(())", *body, "list(g())"],
    "coroutine": lambda body: [
        *("async def c():", *body, "async def d(c=c):", "    await c()", "    LAUNCH()"),
        *("try:", "    d().send(None)", "except StopIteration:", "    LAUNCH()"),
    ],
    "class": lambda body: ["class C:", *body, "    def m(self):", "        return LAUNCH()", "C().m()"],
    # A local `h`: a program inside, which is run among the same globals, may have threads, too.
    "thread": lambda body: [
        *("def t():", *body, "def s(h):", "    h.start()", "    h.join()"),
        "s(threading.Thread(target=t))",
    ],
    "recursion": lambda body: ["def r(n, r):", "    if n:", "        return r(n - 1, r)", *body, "r(5, r)"],
    "try": lambda body: ["try:", "    1 / 0", "except ZeroDivisionError:", *body, "finally:", "    LAUNCH()"],
    "with": lambda body: ["with contextlib.nullcontext(LAUNCH()):", *body],
}


def run(source: list[str], launcher: Launcher) -> None:
    """Runs a program as the file "program.py"."""
    import contextlib
    import threading

    scope = {"LAUNCH": launcher.launch, "threading": threading, "contextlib": contextlib, "__name__": "program"}
    exec(compile("\n".join(source), "program.py", "exec"), scope)
