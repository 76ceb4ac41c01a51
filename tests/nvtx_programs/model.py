"""What a program of steps should leave in a result: the truth, kept beside it as it runs."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

BLUE = 0x0000FF  # the package's colour for ranges of which no colour was said
COLORS = {"red": 0xFF0000, "rapids": 0x7400FF, "blue": BLUE, None: BLUE}


@dataclass(frozen=True)
class Scope:
    """An open region (source 0), or push/pop range (1), as the table `regions` shall have it."""

    name: str
    path: tuple[Scope, ...]  # around it when it was entered
    source: int
    domain: str = ""
    metadata: str = ""

    @property
    def nvtx(self) -> str:
        return joined([s for s in (*self.path, self) if s.source == 1], "/")

    @property
    def text(self) -> str:
        return "/".join(escaped(s.name, "/") for s in (*self.path, self))


@dataclass
class Truth:
    level: str
    threads: dict[int, list[Scope]] = field(default_factory=dict)
    started: dict[int, tuple[str, str, str, int]] = field(default_factory=dict)
    kernels: dict[str, tuple[str, str, str, int]] = field(default_factory=dict)
    regions: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    markers: Counter[tuple[Any, ...]] = field(default_factory=Counter)

    def enter(self, thread: int, name: str, source: int, domain: str = "", metadata: str = "") -> None:
        stack = self.threads.setdefault(thread, [])
        tree = [s for s in stack if s.source == 0 or self.level == "full"]  # of which paths are made
        around = (*tree[-1].path, tree[-1]) if tree else ()
        stack.append(Scope(name, around, source, domain, metadata))

    def leave(self, thread: int, source: int, domain: str = "") -> bool:
        """The innermost of its source and domain; False: there is none."""
        stack = self.threads.setdefault(thread, [])
        for i in reversed(range(len(stack))):
            if stack[i].source == source and stack[i].domain == domain:
                self._row(thread, stack.pop(i), is_open=0)
                return True
        return False

    def _row(self, thread: int, s: Scope, is_open: int) -> None:
        if s.source == 1 and self.level == "launch":
            return
        self.regions[s.name, s.text, s.source, s.domain, s.metadata, len(s.path), thread, is_open] += 1

    def start(self, number: int, name: str, domain: str, metadata: str, thread: int) -> None:
        self.started[number] = (name, domain, metadata, thread)

    def end(self, number: int) -> None:
        self._marker(self.started.pop(number), is_open=0)

    def _marker(self, range_: tuple[str, str, str, int], is_open: int) -> None:
        self.markers[(*range_, is_open)] += 1

    def mark(self, name: str, domain: str, metadata: str, thread: int) -> None:
        self._marker((name, domain, metadata, thread), is_open=0)

    def launch(self, thread: int, name: str) -> None:
        stack = self.threads.get(thread, [])
        if self.level == "launch":
            regions = [s for s in stack if s.source == 0]
            region = regions[-1].text if regions else ""
            nvtx = joined([s for s in stack if s.source == 1], "/")
        else:
            region, nvtx = (stack[-1].text, stack[-1].nvtx) if stack else ("", "")
        open_ = {ranged(name, domain, ",") for name, domain, _, _ in self.started.values()}
        self.kernels[name] = (region, nvtx, ",".join(sorted(open_)), thread)

    def finish(self) -> None:
        for thread, stack in self.threads.items():
            for s in stack:
                self._row(thread, s, is_open=1)
        for range_ in self.started.values():
            self._marker(range_, is_open=1)


def escaped(text: str, separator: str) -> str:
    return "".join("\\" + c if c in (separator, "\\") else c for c in text)


def ranged(name: str, domain: str, separator: str) -> str:
    def quoted(text: str) -> str:
        return "".join("\\" + c if c in (separator, "@", "\\") else c for c in text)

    return f"{quoted(domain)}@{quoted(name)}" if domain else quoted(name)


def joined(scopes: list[Scope], separator: str) -> str:
    return separator.join(ranged(s.name, s.domain, separator) for s in scopes)


def attributes(category: str | None, payload: float | None, color: str | None) -> str:
    """As `metadata` has them; "": none."""
    out: dict[str, Any] = {}
    if category is not None:
        out["category"] = category
    if payload is not None:
        out["payload"] = payload
    if COLORS[color] != BLUE:
        out["color"] = f"#{COLORS[color]:08x}"
    return json.dumps(out, sort_keys=True) if out else ""
