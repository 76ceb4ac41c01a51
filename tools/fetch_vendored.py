"""Fetches what the HTML report has in it of others from npm, by version and hash: python tools/fetch_vendored.py

``cuptiprof/page/vendored/vendored.json`` says which packages, the hash of each package's archive, and which of its files become which of
ours, with their hashes. ``--update`` writes the hashes of what came: for a new version, after one has looked at it.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import sys
import tarfile
import urllib.request
from pathlib import Path

VENDORED = Path(__file__).resolve().parents[1] / "cuptiprof" / "page" / "vendored"
_REGISTRY = "https://registry.npmjs.org"


def fetch(name: str, version: str) -> bytes:
    """The archive of a package."""
    with urllib.request.urlopen(f"{_REGISTRY}/{name}/-/{name}-{version}.tgz", timeout=60) as answer:
        return bytes(answer.read())


def main(update: bool) -> None:
    listed = VENDORED / "vendored.json"
    packages = json.loads(listed.read_text())
    for package in packages:
        archive = fetch(package["name"], package["version"])
        found = "sha512-" + base64.b64encode(hashlib.sha512(archive).digest()).decode()
        if not update and found != package["integrity"]:
            sys.exit(f"{package['name']}: the archive is {found}, not {package['integrity']}")
        package["integrity"] = found
        with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
            for file in package["files"]:
                member = opened.extractfile(file["from"])
                assert member is not None, file["from"]
                data = member.read()
                digest = hashlib.sha256(data).hexdigest()
                if not update and digest != file["sha256"]:
                    sys.exit(f"{file['from']}: {digest}, not {file['sha256']}")
                file["sha256"] = digest
                (VENDORED / file["as"]).write_bytes(data)
                print(f"{package['name']} {package['version']}: {file['as']}")
    if update:
        listed.write_text(json.dumps(packages, indent=2) + "\n")


if __name__ == "__main__":
    main("--update" in sys.argv[1:])
