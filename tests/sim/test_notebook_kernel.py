"""The cells of docs/notebook.md in a kernel of Jupyter's own, in a process of its own, as a notebook runs them."""

from __future__ import annotations

from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

SET_UP = """
%load_ext cuptiprof
import asyncio, cuptiprof
from cuptiprof.integrations.framed_page import FramedPage
from cuptiprof.sim.sim_device import SimDevice
sim = SimDevice()
"""
AWAITED = """
async def work(name):
    with cuptiprof.region(name):
        await asyncio.sleep(0)
        sim.launch("of_" + name)

with cuptiprof.profile() as prof:
    await asyncio.gather(work("a"), work("b"))
kernels = prof.result().kernels
dict(zip(map(str, kernels["name"]), map(str, kernels["region"])))
"""
CELLS = {
    "set up": SET_UP,
    "cell": '%%cuptiprof -o run\nwith cuptiprof.region("fwd"):\n    sim.launch("gemm", count=3)',
    "line": '%cuptiprof --view summary sim.launch("other")',
    "page of a cell": '%%cuptiprof --page\nsim.launch("k")',
    "run": "run",
    "table": "run.kernels",
    "report": 'run.report("regions")',
    "losses": "run.losses",
    "frame": "FramedPage(run)",
    "picture": "run.plot()",
    "awaited": AWAITED,
    "no metric": '%%cuptiprof --metrics nonsense\nsim.launch("k")',
    "fails": '%%cuptiprof -q -o failed\nsim.launch("before")\nraise ValueError("of the cell")',
    "afterwards": 'len(failed.kernels), cuptiprof.profile(device="sim").state',
}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What each cell gave; the kernel goes on after one that fails."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("CUPTIPROF_DEVICE", "sim")
        patched.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        patched.setenv("JUPYTER_PREFER_ENV_PATH", "1")
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS.values()])
        NotebookClient(
            notebook,
            timeout=120,
            kernel_name="python3",
            allow_errors=True,
            resources={"metadata": {"path": str(tmp_path_factory.mktemp("notebook"))}},
        ).execute()
    return {name: cell.outputs for name, cell in zip(CELLS, notebook.cells, strict=True)}


def html(outputs: list[Any]) -> str:
    assert all(output.output_type in ("display_data", "execute_result") for output in outputs), outputs
    return "".join(output.data["text/html"] for output in outputs)


def test_cells_and_statements_show_their_reports(outputs: dict[str, list[Any]]) -> None:
    assert outputs["set up"] == []
    assert all(text in html(outputs["cell"]) for text in ("SIMULATED", "gemm", "fwd"))
    assert "other" in html(outputs["line"]) and "gemm" not in html(outputs["line"])


def test_what_shows_itself(outputs: dict[str, list[Any]]) -> None:
    assert "gemm" in html(outputs["run"])
    assert html(outputs["table"]).count("gemm") == 3
    assert "fwd" in html(outputs["report"])
    assert "Nothing was lost" in html(outputs["losses"])
    (picture,) = outputs["picture"]
    assert {"image/png", "image/svg+xml"} & picture.data.keys()


def test_a_page_stands_in_a_frame(outputs: dict[str, list[Any]]) -> None:
    for cell in ("frame", "page of a cell"):
        assert html(outputs[cell]).count('<iframe sandbox="allow-scripts"') == 1


def test_a_cell_that_awaits(outputs: dict[str, list[Any]]) -> None:
    (found,) = outputs["awaited"]
    assert found.data["text/plain"] == "{'of_a': 'a', 'of_b': 'b'}"


def test_what_fails_says_so_and_the_kernel_goes_on(outputs: dict[str, list[Any]]) -> None:
    (said,) = outputs["no metric"]
    assert said.output_type == "stream" and "'nonsense' is no metric" in said.text
    errors = [output for output in outputs["fails"] if output.output_type == "error"]
    assert errors[0].ename == "ValueError" and "of the cell" in errors[0].evalue
    (after,) = outputs["afterwards"]
    assert after.data["text/plain"] == "(1, 'idle')"
