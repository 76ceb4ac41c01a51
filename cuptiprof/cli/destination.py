"""Where a run goes that ``-o`` asked for: checked before there is a run, so that none is made for nothing."""

from __future__ import annotations

import os
import re
import secrets
import sys
import tempfile
from contextlib import nullcontext
from dataclasses import dataclass

from cuptiprof.cli.output import PLACEHOLDER, expand
from cuptiprof.cli.standard_streams import progress_bar, usable
from cuptiprof.data.result import Result
from cuptiprof.errors import CuptiprofError, ResultError
from cuptiprof.export.formats import RUN_SUFFIX, Format, check_activities, format_of
from cuptiprof.io.files import check_file, check_folder
from cuptiprof.io.rank_place import place_of_rank, refuse_second
from cuptiprof.job.launcher import place_in_job
from cuptiprof.text.addresses import absolute, shown_path

_TRIES = 100


@dataclass(frozen=True)
class Destination:
    """A place that could be written to when it was checked.

    Attributes:
        path: absolute (the script may change its folder), or an address.
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
        with progress_bar(f"writing {shown_path(self.path)}") if bar else nullcontext() as progress:
            if self.format is None:
                result.save(self.path, overwrite=self.overwrite, progress=progress)
            else:
                result.export(self.path, format=self.format.name, overwrite=self.overwrite, progress=progress)
        if self.format is not None and (left_out := self.format.left_out(result)) and usable(sys.stderr):
            print(f"cuptiprof: {shown_path(self.path)}: {left_out}", file=sys.stderr)

    def write_or_beside(self, result: Result) -> bool:
        """``write()``, and if that fails under another name beside it, or in the folder for temporary files; as a saved run, if the
        format cannot be written.

        Returns:
            Whether it lies where it was to; if not, stderr says where it does.
        """
        try:
            self.write(result)
            return True
        except Exception as e:  # whatever it is: the work of hours is at stake
            error = (
                str(e)
                if isinstance(e, CuptiprofError)
                else f"cannot write {shown_path(self.path)}: {type(e).__name__}: {e}"
            )
        for place in self._others():
            try:
                place.write(result)
            except Exception:
                continue
            error += f"\n  saved instead: {shown_path(place.path)}"
            break
        if usable(sys.stderr):
            print(f"cuptiprof: {error}", file=sys.stderr)
        return False

    def _others(self) -> list[Destination]:
        folder, name = os.path.split(self.path)
        suffixes = self.format.suffixes if self.format is not None else (RUN_SUFFIX,)
        suffix = max((s for s in suffixes if name.endswith(s)), key=len, default="")
        stem = name.removesuffix(suffix)
        places = []
        for where in (folder, tempfile.gettempdir()):
            names = (f"{stem}-{i}{suffix}" for i in range(2, _TRIES))
            free = next((n for n in names if not os.path.lexists(os.path.join(where, n))), name)
            places.append(Destination(os.path.join(where, free), self.format, False))
        if self.format is not None:  # what is wrong may be what the format is made of: a saved run needs nothing
            whole = os.path.join(tempfile.gettempdir(), f"{stem}-{secrets.token_hex(4)}{RUN_SUFFIX}")
            places.append(Destination(whole, None, False))
        return places


def destination(text: str, *, overwrite: bool, activities: str | None = None) -> Destination:
    """What follows ``-o``, its placeholders expanded. In a rank of a job a name without any is a folder for the runs of all ranks.

    Args:
        activities: that the session collects, as ``--activities`` has them; None: the usual ones.

    Raises:
        ResultError: the suffix is none of ours, or of a format that the session collects nothing for; it exists and is not to be replaced, or it cannot be written.
    """
    if not text:
        raise ResultError("-o: the name is empty", hint="for example -o run.cuptiprof")
    # By what was typed: the name of a host has dots, too.
    format = format_of(re.sub(PLACEHOLDER, "", text))
    check_activities(format, activities)
    path = absolute(expand(text))
    if format is None and expand(text) == text and (rank := place_in_job(os.environ)).get("world_size", 1) > 1:
        inside = place_of_rank(path, rank)  # one name for all ranks: a folder for their runs
        refuse_second(inside, overwrite=overwrite)
        path = str(inside)
    place = Destination(path, format, overwrite)
    (check_folder if format is None else check_file)(place.path, overwrite=overwrite)
    return place
