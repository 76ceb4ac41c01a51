"""What can be run of a page: its blocks of Python, of commands, and of commands with what they print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    str(p.relative_to(ROOT)): p
    for p in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
}

_FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>```+)(?P<language>\w*)\n(?P<body>.*?)^(?P=indent)(?P=fence)$", re.MULTILINE | re.DOTALL
)
_COMMAND = re.compile(r"^ *(?:\$ )?(cuptiprof|python3?|pip|pytest) ", re.MULTILINE)
_INDENTED = re.compile(r"^(?: {4}\S.*\n)+", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """`language`: "python", "bash" or "console", which are run; anything else is not."""

    line: int
    language: str
    text: str

    @property
    def file(self) -> str | None:
        """Name of the file that it is the content of: a first line ``# train.py``."""
        first = re.match(r"# ([\w-]+\.\w+)$", self.text.partition("\n")[0])
        return first[1] if first and self.language in ("python", "text") else None

    def commands(self) -> Iterator[tuple[str, str]]:
        """(command, what it prints) of a "console", (command, "") of a "bash" block. A line that ends in ``\\`` goes on."""
        if self.language == "bash":
            for command in re.sub(r"\\\n *", "", self.text).splitlines():
                if command.strip() and not command.startswith("#"):
                    yield command, ""
            return
        for part in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            command, _, output = re.sub(r"\\\n *", "", part).partition("\n")
            yield command, output


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page."""
    return [
        Block(
            text.count("\n", 0, m.start()) + 1,
            m["language"],
            re.sub(f"^{m['indent']}", "", m["body"], flags=re.MULTILINE),
        )
        for m in _FENCE.finditer(text)
    ]


def unmarked_commands(text: str) -> list[int]:
    """Lines of blocks that hold commands and do not say so: nobody would run them."""
    fenced = [
        b.line for b in blocks(text) if b.language not in ("bash", "console", "python") and _COMMAND.search(b.text)
    ]
    rest = _FENCE.sub(lambda m: "\n" * m[0].count("\n"), text)
    indented = [rest.count("\n", 0, m.start()) + 1 for m in _INDENTED.finditer(rest) if _COMMAND.search(m[0])]
    return sorted(fenced + indented)


def same_output(documented: str, printed: str) -> bool:
    """The same words in the lines that have numbers, which may differ: how wide they are decides which columns a terminal gets, and so
    headings and legends are not compared. A line ``...`` stands for any lines."""
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + "\n" for line in _words(documented))
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _words(printed))) is not None


def _words(text: str) -> list[str]:
    lines = []
    for line in text.splitlines():
        marked = re.sub(r"(?<![\w.])[-+]?\d[\d,.]*(e[-+]?\d+)?(?:ns|us|ms|s|[KMGT]?B(?:/s)?|x)?(?![\w.])%?", "#", line)
        if "#" in marked or line == "...":
            lines.append(re.sub(r"#(\s+([#-](?=\s)|#))*", "#", marked).strip())
    return [re.sub(r"\s+", " ", line) for line in lines]
