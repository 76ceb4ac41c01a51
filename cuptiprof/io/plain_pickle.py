"""Pickles of plain values, read without trusting them: nothing of them is ever run or imported.

What torch's flight recorder writes (``torch/csrc/distributed/c10d``, ``pickle_str``: protocol 2) and Python's own pickle of dict, list, tuple, str,
int, float, bool and None. Anything else (classes, functions, objects, bytes, sets, persistent IDs) is an error, not a warning.
"""

from __future__ import annotations

import struct
from typing import Any

from cuptiprof.errors import ResultError

MOST_VALUES = 10_000_000
"""Values in all, those that are referred to several times counted as often."""
_MARK = object()
_U32, _I32, _F64 = struct.Struct("<I"), struct.Struct("<i"), struct.Struct(">d")


def read_plain_pickle(data: bytes, what: str) -> Any:
    """The one value that is pickled.

    Args:
        what: what it is, for the error.

    Raises:
        ResultError: it is cut short, has other things than plain values, refers to itself, or is too large.
    """
    try:
        return _Reader(data).read()
    except (_Refused, IndexError, KeyError, TypeError, struct.error, UnicodeDecodeError, OverflowError) as e:
        why = str(e) if isinstance(e, _Refused) else "it is damaged or cut short"
        raise ResultError(
            f"{what}: {why}", hint="a pickle of plain values, as PyTorch's flight recorder writes it"
        ) from None


class _Refused(Exception):
    pass


class _Reader:
    """A machine of pickle's with the instructions that plain values need.

    A container that another one holds is never changed any more: so there are no circles, and its weight (values in it) is known.
    """

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._alive: list[Any] = []  # containers: an id is one container's as long as this reads
        self._weight: dict[int, int] = {}
        self._held: set[int] = set()

    def read(self) -> Any:
        data, stack, memo = self._data, self._stack, self._memo
        while True:
            op = data[self._at]
            self._at += 1
            if op == 0x68:  # BINGET
                stack.append(memo[data[self._at]])
                self._at += 1
            elif op in (0x71, 0x72):  # BINPUT, LONG_BINPUT
                memo[data[self._at] if op == 0x71 else _U32.unpack_from(data, self._at)[0]] = stack[-1]
                self._at += 1 if op == 0x71 else 4
            elif op == 0x94:  # MEMOIZE
                memo[len(memo)] = stack[-1]
            elif op == 0x6A:  # LONG_BINGET
                stack.append(memo[_U32.unpack_from(data, self._at)[0]])
                self._at += 4
            elif op == 0x58:  # BINUNICODE
                self._text(_U32.unpack(self._bytes(4))[0])
            elif op == 0x8C:  # SHORT_BINUNICODE
                self._text(self._bytes(1)[0])
            elif op == 0x4B:  # BININT1
                stack.append(self._bytes(1)[0])
            elif op == 0x4D:  # BININT2
                stack.append(int.from_bytes(self._bytes(2), "little"))
            elif op == 0x4A:  # BININT
                stack.append(_I32.unpack(self._bytes(4))[0])
            elif op == 0x8A:  # LONG1
                length = self._bytes(1)[0]
                if length > 8:
                    raise _Refused("a whole number of more than 64 bits")
                stack.append(int.from_bytes(self._bytes(length), "little", signed=True))
            elif op == 0x47:  # BINFLOAT
                stack.append(_F64.unpack(self._bytes(8))[0])
            elif op in _CONSTANTS:  # NONE, NEWTRUE, NEWFALSE
                stack.append(_CONSTANTS[op])
            elif op == 0x28:  # MARK
                stack.append(_MARK)
            elif op in (0x5D, 0x7D):  # EMPTY_LIST, EMPTY_DICT
                self._new([] if op == 0x5D else {}, 1)
            elif op == 0x29:  # EMPTY_TUPLE
                self._new((), 1)
            elif op in (0x85, 0x86, 0x87):  # TUPLE1, TUPLE2, TUPLE3
                self._tuple(self._last(op - 0x84))
            elif op == 0x74:  # TUPLE
                self._tuple(self._since_mark())
            elif op in (0x61, 0x65):  # APPEND, APPENDS
                self._append(self._last(1) if op == 0x61 else self._since_mark())
            elif op in (0x73, 0x75):  # SETITEM, SETITEMS
                self._set(self._last(2) if op == 0x73 else self._since_mark())
            elif op == 0x80:  # PROTO
                if self._bytes(1)[0] > 5:
                    raise _Refused("an unknown protocol")
            elif op == 0x95:  # FRAME: how much follows
                self._bytes(8)
            elif op == 0x2E:  # STOP
                if len(stack) != 1 or stack[0] is _MARK:
                    raise _Refused("it is damaged")
                return stack[0]
            else:
                raise _Refused(
                    f"it has more than plain values (instruction {op:#04x}), and could do anything when it is unpickled"
                )

    def _bytes(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._data):
            raise _Refused("it is cut short")
        found = self._data[self._at : end]
        self._at = end
        return found

    def _text(self, length: int) -> None:
        self._stack.append(self._bytes(length).decode("utf-8", "replace"))

    def _since_mark(self) -> list[Any]:
        stack = self._stack
        at = len(stack) - 1
        while stack[at] is not _MARK:
            at -= 1
            if at < 0:
                raise _Refused("it is damaged")
        found = stack[at + 1 :]
        del stack[at:]
        return found

    def _last(self, count: int) -> list[Any]:
        found = self._stack[-count:]
        if len(found) < count or any(value is _MARK for value in found):
            raise _Refused("it is damaged")
        del self._stack[-count:]
        return found

    def _new(self, container: Any, weight: int) -> None:
        if weight > MOST_VALUES or len(self._alive) >= MOST_VALUES:
            raise _Refused(f"it has more than {MOST_VALUES:,} values")
        self._alive.append(container)
        self._weight[id(container)] = weight
        self._stack.append(container)

    def _tuple(self, values: list[Any]) -> None:
        self._hold(values)
        self._new(tuple(values), 1 + self._sum(values))

    def _append(self, values: list[Any]) -> None:
        target = self._open(list)
        self._grow(target, values)
        target.extend(values)

    def _set(self, values: list[Any]) -> None:
        target = self._open(dict)
        keys = values[::2]
        if len(values) % 2 or not all(type(key) is str for key in keys):
            raise _Refused("a mapping by something else than text")
        self._grow(target, values)
        target.update(zip(keys, values[1::2], strict=True))

    def _open(self, kind: type) -> Any:
        target = self._stack[-1]
        if type(target) is not kind or id(target) in self._held:
            raise _Refused("it is damaged")
        return target

    def _grow(self, target: Any, values: list[Any]) -> None:
        if any(value is target for value in values):
            raise _Refused("it refers to itself")
        self._hold(values)
        weight = self._weight[id(target)] + self._sum(values)
        if weight > MOST_VALUES:
            raise _Refused(f"it has more than {MOST_VALUES:,} values")
        self._weight[id(target)] = weight

    def _hold(self, values: list[Any]) -> None:
        self._held.update(id(value) for value in values if id(value) in self._weight)

    def _sum(self, values: list[Any]) -> int:
        return sum(self._weight.get(id(value), 1) for value in values)


_CONSTANTS = {0x4E: None, 0x88: True, 0x89: False}
