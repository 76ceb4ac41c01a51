"""When modules were at work, as the page's timeline has it."""

from __future__ import annotations

from cuptiprof.data.tables import Strings, Table
from cuptiprof.page.module_runs import module_runs


def runs(*operators: tuple[int, int, int, str]) -> set[tuple[int, int, int, str]]:
    thread, start, end, module = zip(*operators, strict=True) if operators else ((), (), (), ())
    columns = {"thread": thread, "start": start, "end": end, "module": module, "name": ["op"] * len(operators)}
    found = module_runs(Table.from_columns("operators", columns, Strings()))
    names = [found[3].names[i] for i in found[3].ids.tolist()]
    return set(zip(*(column.tolist() for column in found[:3]), names, strict=True))


def test_a_module_lasts_from_its_first_operator_to_its_last() -> None:
    assert runs((1, 10, 20, "net.a"), (1, 30, 40, "net.a"), (1, 50, 60, "net.b"), (1, 70, 80, "")) == {
        (1, 10, 60, "net"),
        (1, 10, 40, "net.a"),
        (1, 50, 60, "net.b"),
    }


def test_threads_and_returns_to_a_module_are_apart() -> None:
    assert runs((1, 10, 20, "net"), (2, 12, 18, "net"), (1, 30, 40, "head"), (1, 50, 60, "net")) == {
        (1, 10, 20, "net"),
        (2, 12, 18, "net"),
        (1, 30, 40, "head"),
        (1, 50, 60, "net"),
    }


def test_no_operators_no_modules() -> None:
    assert runs() == set()
    assert runs((1, 10, 20, "")) == set()
