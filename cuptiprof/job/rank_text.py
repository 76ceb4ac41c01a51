"""Ranks in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

_MOST = 8


def ranks_text(ranks: Sequence[int]) -> str:
    """ "rank 3", "ranks 0-5, 8 and 12"; of many pieces the first eight.

    Args:
        ranks: in ascending order.
    """
    pieces: list[list[int]] = []
    for rank in ranks:
        if pieces and pieces[-1][1] == rank - 1:
            pieces[-1][1] = rank
        else:
            pieces.append([rank, rank])
    texts = [str(a) if a == b else f"{a}, {b}" if b == a + 1 else f"{a}-{b}" for a, b in pieces[:_MOST]]
    rest = sum(b - a + 1 for a, b in pieces[_MOST:])
    return f"rank{'s' if len(ranks) != 1 else ''} {', '.join(texts)}" + (f" and {rest} more" if rest else "")


def count_of(number: int, what: str) -> str:
    """ "1 rank", "64 ranks"."""
    return f"{number:,} {what}{'s' if number != 1 else ''}"
