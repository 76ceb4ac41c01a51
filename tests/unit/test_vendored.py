"""What the page has in it of others: the files that were fetched, with their licences."""

from __future__ import annotations

import hashlib
import json

import pytest

from cuptiprof.page.section import VENDORED

PACKAGES = json.loads((VENDORED / "vendored.json").read_text())


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package["name"])
def test_files_are_what_was_fetched(package) -> None:
    for file in package["files"]:
        assert hashlib.sha256((VENDORED / file["as"]).read_bytes()).hexdigest() == file["sha256"], file["as"]
    assert package["integrity"].startswith("sha512-")


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package["name"])
def test_licences_allow_it_and_are_there(package) -> None:
    assert package["licence"] in ("MIT", "ISC", "BSD-2-Clause", "BSD-3-Clause")
    text = (VENDORED / package["licence_file"]).read_text()
    assert "Permission" in text or "Redistribution" in text


def test_nothing_else_is_there() -> None:
    named = {file["as"] for package in PACKAGES for file in package["files"]}
    assert {path.name for path in VENDORED.iterdir() if path.is_file()} == {*named, "vendored.json"}
