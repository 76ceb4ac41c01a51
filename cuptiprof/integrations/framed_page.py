"""The HTML report of a run in the output of a notebook's cell."""

from __future__ import annotations

import html

from cuptiprof.data.result import Result

_HEIGHT = 720  # pixels


class FramedPage:
    """The page of a run, which a notebook shows in a frame. It may run its own scripts and reach nothing else: neither the notebook
    nor the network.

    Args:
        result: the run.
        name: what the page calls it.
        height: of the frame, pixels.
    """

    def __init__(self, result: Result, name: str = "run", *, height: int = _HEIGHT) -> None:
        self._result = result
        self._name = name
        self._height = int(height)

    def __repr__(self) -> str:
        return f"<cuptiprof page of {self._name!r}: a notebook shows it>"

    def _repr_html_(self) -> str:
        from cuptiprof.page import PageRun, make_page  # with jinja2

        page = make_page([PageRun(self._name, self._result)])
        return (
            f'<iframe sandbox="allow-scripts" referrerpolicy="no-referrer" title="cuptiprof" '
            f'style="width:100%;height:{self._height}px;border:0" srcdoc="{html.escape(page, quote=True)}"></iframe>'
        )
