"""Imports the compiled part, or says why it is not there and what to do.

Python looks into the current folder first: in a checkout it finds the sources, which have no compiled part, before the
installed package.
"""

from __future__ import annotations

from pathlib import Path


def why_missing(package: Path) -> str:
    """What is wrong with the package in this folder, and a hint."""
    import sysconfig
    from importlib.machinery import EXTENSION_SUFFIXES
    from importlib.metadata import PackageNotFoundError, distribution

    others = sorted(p.name for p in package.glob("_core.*.so"))
    if others:
        return (
            f"cuptiprof in {package} was compiled for another Python ({others[0]}; this one needs {EXTENSION_SUFFIXES[0]})"
            "\n  hint: pip install --force-reinstall cuptiprof"
        )
    if not (package.parent / "pyproject.toml").is_file():
        return f"cuptiprof in {package} lacks its compiled part\n  hint: pip install --force-reinstall cuptiprof"
    try:
        where = distribution("cuptiprof").locate_file("cuptiprof")
        elsewhere = str(where) if Path(str(where)).resolve() != package.resolve() else ""
    except PackageNotFoundError:
        elsewhere = ""
    text = f"cuptiprof was imported from its source folder {package}, which has no compiled part"
    if elsewhere:
        return f"{text}; the installed one is {elsewhere}\n  hint: run Python in another folder, or: pip install -e {package.parent}"
    return f"{text}, and it is not installed in {sysconfig.get_path('purelib')}\n  hint: pip install {package.parent}, and run Python in another folder"


try:
    import cuptiprof._core  # noqa: F401
except ModuleNotFoundError as e:
    if e.name != "cuptiprof._core":
        raise
    raise ImportError(why_missing(Path(__file__).parent), name=e.name) from None
