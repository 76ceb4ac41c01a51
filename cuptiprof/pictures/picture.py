"""A picture of a run: shown by a notebook, written to a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from cuptiprof.pictures.canvas import save_picture, svg_text


class Picture:
    """What ``result.plot(...)`` gives. A notebook shows it; :meth:`save` writes it.

    Attributes:
        title: what it shows.
        svg: the image as SVG, names as text. Equal results give equal images.
    """

    def __init__(self, title: str, draw: Callable[[], Any]) -> None:
        self.title = title
        self._draw = draw
        self.svg = svg_text(draw)

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<cuptiprof.Picture: {self.title}; save(path) writes it as SVG or PNG>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as SVG or PNG, by the name of the file, which is replaced.

        Raises:
            ResultError: another kind of file, or it cannot be written.
        """
        save_picture(path, self._draw)
