"""Met first by every Python that a script under ``cuptiprof run --profile-child-processes`` starts: its folder leads PYTHONPATH.

Imports nothing of cuptiprof before the program's own ``sitecustomize``, and lets no failure of ours reach the program.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec


def _run_the_programs_own() -> None:
    """The ``sitecustomize`` that would have been found without this one takes its place."""
    spec = PathFinder.find_spec("sitecustomize")
    if spec is not None and spec.loader is not None:
        module = sys.modules["sitecustomize"] = module_from_spec(spec)
        spec.loader.exec_module(module)


def _begin() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if not p or os.path.abspath(p) != here]
    try:
        _run_the_programs_own()
    finally:
        try:
            from cuptiprof.cli.in_child import begin
        except Exception as e:  # another environment's Python: the parent says that it was not profiled
            _leave_word(f"{type(e).__name__}: {e}")
        else:
            begin()


def _leave_word(why: str) -> None:
    try:
        import json

        records = json.loads(os.environ["CUPTIPROF_CHILDREN"])["records"]
        text = {"pid": os.getpid(), "argv": sys.orig_argv[:50], "state": "failed", "why": why}
        with open(os.path.join(records, f"{os.getpid()}.foreign.json"), "w") as f:
            json.dump(text, f)
    except Exception:
        return


if "CUPTIPROF_CHILDREN" in os.environ:
    _begin()
