"""What speedscope's importer makes of our files is what our summaries say: python compare.py SPEEDSCOPE/dist/release FILES"""

from __future__ import annotations

import base64
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

ENTRY = re.compile(r"window\.speedscope=\{(?=loadFileFromBase64:\(\w+,\w+\)=>\{this\.loadProfile\(\(\)=>(\w+)\()")
"""where the page makes its importer known, which is called by the group's name"""
READ = """async ([name, data]) => {
  const group = await window.speedscope.importer(name, data);
  const frames = {};
  let total = 0;
  for (const profile of group.profiles) {
    total += profile.getTotalWeight();
    profile.forEachFrame((frame) => { frames[frame.name] = (frames[frame.name] ?? 0) + frame.getSelfWeight(); });
  }
  return { name: group.name, total, frames };
}"""


def opened(release: Path, folder: Path, page: Page) -> None:
    """speedscope's page, with its importer within reach."""
    copy = Path(shutil.copytree(release, folder / "speedscope"))
    (script,) = copy.glob("speedscope-*.js")
    text, found = ENTRY.subn(lambda match: f"{match[0]}importer:{match[1]},", script.read_text())
    if found != 1:
        raise SystemExit("speedscope's importer is not where it was in 1.25.0")
    script.write_text(text)
    (copy / "nothing.js").write_text("")
    page.goto(f"{(copy / 'index.html').as_uri()}#localProfilePath={copy / 'nothing.js'}")
    page.wait_for_function("!!window.speedscope?.importer")


def main() -> None:
    release, folder = map(Path, sys.argv[1:3])
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        opened(release, folder, page)
        files = sorted(f for f in folder.iterdir() if f.name.endswith((".speedscope.json", ".folded", ".pb.gz")))
        for file in files:
            check(page, folder, file)
        browser.close()
    print(f"speedscope: {len(files)} files")


def check(page: Page, folder: Path, file: Path) -> None:
    summary = json.loads((folder / f"{file.name.split('.')[0]}.summary").read_text())
    ours = {row["name"]: row["time_ns"] for row in summary["rows"] if row["block"] == "GPU activities"}
    if not ours and not file.name.endswith(".speedscope.json"):
        return  # a file of nothing is no profile to it
    found: dict[str, Any] = page.evaluate(READ, [file.name, base64.b64encode(file.read_bytes()).decode()])
    theirs = {name: round(ns) for name, ns in found["frames"].items() if ns}
    if file.name.endswith(".folded"):  # where a ; would end the frame
        ours = {name.replace(";", ":"): ns for name, ns in ours.items()}
    if theirs != {name: ns for name, ns in ours.items() if ns} or round(found["total"]) != sum(ours.values()):
        raise SystemExit(f"{file.name}: {theirs} by speedscope, {ours} by us")


if __name__ == "__main__":
    main()
