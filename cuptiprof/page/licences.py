"""Whose work is in the page beside our own."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

from cuptiprof.page.section import VENDORED


@dataclass(frozen=True)
class Licence:
    """A package: what it is called on npm, its version, where it comes from, and the licence with its text."""

    name: str
    version: str
    home: str
    licence: str
    text: str


def licences(files: Collection[str]) -> list[Licence]:
    """Of the packages that files of ``vendored/`` come from."""
    out = []
    for package in json.loads((VENDORED / "vendored.json").read_text(encoding="utf-8")):
        if any(file["as"] in files for file in package["files"]):
            text = (VENDORED / package["licence_file"]).read_text(encoding="utf-8")
            out.append(Licence(package["name"], package["version"], package["home"], package["licence"], text))
    return out
