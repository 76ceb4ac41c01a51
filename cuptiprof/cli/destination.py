"""Where a run goes that ``-o`` asked for: checked before there is a run, so that none is made for nothing."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from cuptiprof.cli.output import PLACEHOLDER, expand, progress_bar, usable
from cuptiprof.data.result import Result
from cuptiprof.errors import CuptiprofError, ResultError
from cuptiprof.io.files import check_file, check_folder
from cuptiprof.io.formats import Format, format_of

_TRIES = 100


@dataclass(frozen=True)
class Destination:
    """A place that could be written to when it was checked.

    Attributes:
        path: absolute: the script may change its folder.
        format: of a file; None: a saved run, which is a folder.
    """

    path: str
    format: Format | None
    overwrite: bool

    def write(self, result: Result, *, bar: bool = True) -> None:
        """Save or export, on a terminal with a progress bar.

        Raises:
            ResultError: it cannot be written any more.
        """
        with progress_bar(f"writing {self.path}") if bar else nullcontext() as progress:
            if self.format is None:
                result.save(self.path, overwrite=self.overwrite, progress=progress)
            else:
                result.export(self.path, format=self.format.name, overwrite=self.overwrite, progress=progress)

    def write_or_beside(self, result: Result) -> bool:
        """``write()``, and if that fails under another name beside it, or in the folder for temporary files.

        Returns:
            Whether it lies where it was to; if not, stderr says where it does.
        """
        try:
            self.write(result)
            return True
        except Exception as e:  # whatever it is: the work of hours is at stake
            error = str(e) if isinstance(e, CuptiprofError) else f"cannot write {self.path}: {type(e).__name__}: {e}"
        for place in self._others():
            try:
                place.write(result)
            except Exception:
                continue
            error += f"\n  saved instead: {place.path}"
            break
        if usable(sys.stderr):
            print(f"cuptiprof: {error}", file=sys.stderr)
        return False

    def _others(self) -> list[Destination]:
        folder, name = os.path.split(self.path)
        suffix = "".join(s for s in Path(name).suffixes[-2:] if s in (".json", ".gz", ".cuptiprof"))
        stem = name.removesuffix(suffix)
        places = []
        for where in (folder, tempfile.gettempdir()):
            names = (f"{stem}-{i}{suffix}" for i in range(2, _TRIES))
            free = next((n for n in names if not os.path.lexists(os.path.join(where, n))), name)
            places.append(Destination(os.path.join(where, free), self.format, False))
        return places


def destination(text: str, *, overwrite: bool) -> Destination:
    """What follows ``-o``, its placeholders expanded.

    Raises:
        ResultError: the suffix is none of ours, it exists and is not to be replaced, or it cannot be written.
    """
    if not text:
        raise ResultError("-o: the name is empty", hint="for example -o run.cuptiprof")
    # By what was typed: the name of a host has dots, too.
    format = format_of(re.sub(PLACEHOLDER, "", text))
    place = Destination(os.path.abspath(expand(text)), format, overwrite)
    (check_folder if format is None else check_file)(place.path, overwrite=overwrite)
    return place
