"""Names of C++ functions in less room, by meaning: what says least goes first.

Return type and parameters, then namespaces, then the arguments of template arguments, then template arguments that all
functions of that name in the table have in common, then the others; at last the middle of the name. A name that is no
C++ (Triton's, a copy's) loses its middle: its head and its tail say most.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cuptiprof.text.names import display_width

ELLIPSIS = "…"
_LONGEST = 8192  # characters past which a name is not looked into
_DEEPEST = 32  # brackets inside brackets

_PAIRS = {"(": ")", "<": ">", "{": "}", "[": "]"}
# What holds brackets that open nothing, and words with blanks in them.
_TOKEN = re.compile(
    r"\(anonymous namespace\)|operator\s*(?:\(\)|\[\]|->\*?|<=>|<<=|>>=|<<|>>|<=|>=|<|>|(?:unsigned |long |new|delete)[\w ]*)(?: (?=<))?|->|::|."
)


@dataclass(frozen=True)
class _Parts:
    """``before scope::base<arguments>after``: a function's name taken to pieces."""

    scope: str  # with its "::"
    base: str
    arguments: tuple[str, ...]


def shorten(names: Iterable[str], width: int) -> dict[str, str]:
    """Each of the names in at most ``width`` cells; those that are one function's with other arguments stay apart while
    there is room."""
    out: dict[str, str] = {}
    families: dict[str, dict[str, _Parts]] = {}
    others: list[str] = []
    for name in dict.fromkeys(names):
        if display_width(name) <= width:
            out[name] = name
        elif (parts := _take_apart(name)) is None:
            others.append(name)
        else:
            families.setdefault(parts.base, {})[name] = parts
    for family in families.values():
        out |= _of_one_function(family, width)
    return out | _of_others(others, width)


def function_name(name: str) -> str:
    """A C++ function's qualified name without its return type, template arguments and parameters, so that instantiations of one
    template are called alike; in what is no C++, and in what is left, addresses are ``0x…``.

    As Holistic Trace Analysis's ``shorten_name``, which takes the text after the last blank.
    """
    parts = _take_apart(name)
    short = name
    if parts is not None:
        scope = parts.scope
        for _ in range(_DEEPEST):  # the innermost brackets first
            scope = _TEMPLATE.sub("", scope)
        short = scope + parts.base
    return _ADDRESS.sub(f"0x{ELLIPSIS}", short)


_ADDRESS = re.compile(r"(?<![0-9A-Za-z])0x[0-9a-fA-F]{4,16}(?![0-9A-Za-z])")
_TEMPLATE = re.compile(r"<[^<>]*>")


def _of_one_function(family: dict[str, _Parts], width: int) -> dict[str, str]:
    apart = _differing([parts.arguments for parts in family.values()])
    out = {
        name: next((text for text in _shorter(parts, apart) if display_width(text) <= width), "")
        or cut_middle(parts.base, width)
        for name, parts in family.items()
    }
    alike = _alike(out)
    plain = {n: tuple(_without_arguments(_without_namespaces(a)) for a in family[n].arguments) for n in alike}
    apart = _differing(list(plain.values()))
    for name in alike:  # the arguments that tell them apart, at the cost of the function's name
        told = _in_brackets(plain[name], set(apart))
        base = cut_middle(family[name].base, max(width // 2, width - display_width(told)))
        out[name] = base + cut_middle(told, width - display_width(base))
    return out


def _of_others(names: list[str], width: int) -> dict[str, str]:
    out = {name: cut_middle(name, width) for name in names}
    groups: dict[str, list[str]] = {}
    for name in _alike(out):
        groups.setdefault(out[name], []).append(name)
    for group in groups.values():  # what they begin with alike goes, up to the last part of it
        begins = re.match(r".*[_:.]|", os.path.commonprefix(group), re.DOTALL)  # noqa: RUF071 (letters are meant)
        for name in group:
            out[name] = cut_middle(ELLIPSIS + name[begins.end() if begins else 0 :], width)
    return out


def _alike(short: dict[str, str]) -> list[str]:
    """Names whose short form is also that of another."""
    count = Counter(short.values())
    return [name for name, text in short.items() if count[text] > 1]


def cut_middle(text: str, width: int) -> str:
    """``text`` without its middle, in at most ``width`` cells (at least one)."""
    if display_width(text) <= width:
        return text
    room = max(width, 1) - 1
    tail = room * 2 // 5
    return _head(text, room - tail) + ELLIPSIS + _head(text[::-1], tail)[::-1]


def _head(text: str, width: int) -> str:
    used = 0
    for i, character in enumerate(text):
        used += display_width(character)
        if used > width:
            return text[:i]
    return text


def _shorter(parts: _Parts, apart: frozenset[int]) -> Iterator[str]:
    """Ever shorter forms."""
    yield parts.scope + parts.base + _in_brackets(parts.arguments)
    yield parts.base + _in_brackets(parts.arguments)
    arguments = tuple(_without_namespaces(a) for a in parts.arguments)
    yield parts.base + _in_brackets(arguments)
    arguments = tuple(_without_arguments(a) for a in arguments)
    yield parts.base + _in_brackets(arguments)
    places = range(len(arguments) - 1, -1, -1)
    kept = set(places)
    for i in (*(i for i in places if i not in apart), *(i for i in places if i in apart)):
        kept.discard(i)
        yield parts.base + _in_brackets(arguments, kept)
    yield parts.base


def _in_brackets(arguments: tuple[str, ...], kept: set[int] | None = None) -> str:
    if not arguments:
        return ""
    shown: list[str] = []
    for i, argument in enumerate(arguments):
        text = argument if kept is None or i in kept else ELLIPSIS
        if text != ELLIPSIS or shown[-1:] != [ELLIPSIS]:
            shown.append(text)
    return f"<{', '.join(shown)}>"


def _differing(families: list[tuple[str, ...]]) -> frozenset[int]:
    """Places at which not all have the same argument."""
    longest = max(map(len, families), default=0)
    return frozenset(i for i in range(longest) if len({a[i : i + 1] for a in families}) > 1)


def _take_apart(name: str) -> _Parts | None:
    """None: it does not look like a C++ function, or its brackets do not match."""
    found = _split(name) if re.search("[(<]|::", name) else None
    if found is None:
        return None
    *scope, last = found
    while scope and (last.startswith(("operator()", "{lambda"))):  # says nothing without whose it is
        last = f"{scope.pop()}::{last}"
    base, arguments = _arguments(last)
    if not base or (base == name and not scope):
        return None
    return _Parts("".join(f"{s}::" for s in scope), base, arguments)


def _split(name: str) -> list[str] | None:
    """The components of the qualified name, without what comes before it (a return type) and after it (parameters)."""
    parts: list[str] = []
    depth: list[str] = []
    start, parameters = 0, -1
    if len(name) > _LONGEST:
        return None
    for token in _TOKEN.finditer(name):
        text = token.group()
        if text in _PAIRS:
            if not depth and text == "(":
                parameters = token.start()
            depth.append(_PAIRS[text])
            if len(depth) > _DEEPEST:
                return None
        elif depth and text == depth[-1]:
            depth.pop()
        elif text in (">", ")", "}", "]"):
            return None
        elif not depth and text == "::":
            parts.append(name[start : token.start()])
            start, parameters = token.end(), -1
        elif not depth and text == " " and parameters < 0:
            parts, start = [], token.end()  # what came before was a type
    if depth:
        return None
    return [*parts, name[start : parameters if parameters >= 0 else len(name)]]


def _arguments(text: str) -> tuple[str, tuple[str, ...]]:
    """``base<a, b<c, d>>`` -> (base, (a, b<c, d>))."""
    opened = text.find("<")
    if opened <= 0 or not text.endswith(">") or text.startswith("operator"):
        return text, ()
    arguments, start, depth = [], opened + 1, 0
    for i in range(opened + 1, len(text) - 1):
        if text[i] in _PAIRS:
            depth += 1
        elif text[i] in ")>}]":
            depth -= 1
            if depth < 0:
                return text, ()
        elif text[i] == "," and not depth:
            arguments.append(text[start:i].strip())
            start = i + 1
    return text[:opened], (*arguments, text[start:-1].strip())


_NAMESPACE = re.compile(r"(?<!\w)(?:(?:\w+|\(anonymous namespace\))::)+(?=[\w{(~])")


def _without_namespaces(argument: str) -> str:
    return _NAMESPACE.sub("", argument).replace("> >", ">>")


def _without_arguments(argument: str) -> str:
    """Only the name of a template argument: ``Array<char*, 3>`` -> ``Array``; of a lambda the function it is in."""
    found = _split(argument)
    if found is None:
        return argument
    if len(found) > 1 and found[-1].startswith(("{lambda", "operator()")):
        base, arguments = _arguments(found[0].partition("(")[0])
        return f"{base}<{_without_arguments(arguments[0])}>" if arguments else base
    last = found[-1] or argument
    return _arguments(last)[0] + ("*" if argument.endswith("*") and not last.endswith("*") else "")
