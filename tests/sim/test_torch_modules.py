"""The PyTorch module of each launch, against what PyTorch says of where the module is."""

from __future__ import annotations

import gc
import itertools
import subprocess
import sys
import threading
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from module_programs import Block, Leaf, Sequential, built, modules_of, profiled, said, trees
from torch import nn
from torch.utils.checkpoint import checkpoint

import cuptiprof
from cuptiprof.errors import SessionError
from cuptiprof.session.torch_modules import UNATTRIBUTED, call_of_modules
from cuptiprof.sim.sim_device import Op, SimDevice


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=trees())
def test_the_module_of_each_launch_is_where_pytorch_says(sim: SimDevice, tree: Any) -> None:
    model = built(tree, itertools.count())
    result = profiled(model)
    assert modules_of(result) == said(model)
    assert not result.losses


@pytest.mark.parametrize("beside", ["lines", "stacks"])
def test_beside_lines_and_stacks(sim: SimDevice, beside: str) -> None:
    model = Block("b", Leaf("x"), Leaf("y"))
    sources = [["modules", beside], beside]
    both, alone = (profiled(model, sources=s) for s in sources)
    assert modules_of(both) == said(model)
    assert modules_of(alone).keys() == said(model).keys() and set(alone.kernels["module"]) == {""}
    assert list(both.kernels["line"]) == list(alone.kernels["line"])
    assert len(both.stacks) == len(alone.stacks)
    depths = [[len(r.python_stacks().frames(int(s))) for s in r.kernels["stack"]] for r in (both, alone)]
    assert depths[0] == depths[1]


def test_without_the_source_nothing_is_kept(sim: SimDevice) -> None:
    assert set(profiled(Leaf(), sources=None).kernels["module"]) == {""}
    assert "__del__" not in vars(nn.Module)


def test_work_outside_of_modules_has_none(sim: SimDevice) -> None:
    result = profiled(Leaf("inside"), lambda: sim.launch("outside"))
    assert modules_of(result) == {"inside": {"Leaf"}, "outside": {""}}


def test_copies_and_sets_have_modules(sim: SimDevice) -> None:
    class Copies(nn.Module):
        def forward(self) -> None:
            sim.call(Op.MEMCPY, bytes=8)
            sim.call(Op.MEMSET, bytes=8)

    outer = Sequential(Copies())
    result = profiled(outer[0], activities=None)
    assert list(result.memcpys["module"]) == list(result.memsets["module"]) == ["Sequential.0"]


def test_models_of_one_class_that_live_at_once_are_told_apart(sim: SimDevice) -> None:
    first, second = Block("first", Leaf("a")), Block("second", Leaf("b"))
    result = profiled(second, first, second)
    assert modules_of(result) == {
        "second before": {"Block"}, "second after": {"Block"}, "b": {"Block.parts.0"},
        "first before": {"Block#2"}, "first after": {"Block#2"}, "a": {"Block#2.parts.0"},
    }  # fmt: skip


def test_models_that_follow_each_other_have_one_name(sim: SimDevice) -> None:
    def trial() -> None:
        Block("b", Leaf("a"))()

    result = profiled(*[trial] * 5)
    assert modules_of(result)["a"] == {"Block.parts.0"}


@pytest.mark.parametrize("on_a_thread", [False, True])
def test_models_made_in_the_session(sim: SimDevice, on_a_thread: bool) -> None:
    """On other threads nobody can look before the session ends, or the model dies: both are used."""
    kept: list[nn.Module] = []

    def program() -> None:
        for i in range(3):
            model = Block(f"m{i}", Leaf(f"k{i}"), Sequential(Leaf(f"s{i}")))
            model()
            if i == 0:
                kept.append(model)
        Sequential(Leaf("inside"), Leaf("other"))()

    def threaded() -> None:
        thread = threading.Thread(target=program)
        thread.start()
        thread.join()

    found = modules_of(profiled(threaded if on_a_thread else program))
    assert found["k0"] == {"Block.parts.0"} and found["s0"] == {"Block.parts.1.0"}
    assert found["k1"] == found["k2"] == {"Block#2.parts.0"}
    assert found["inside"] == {"Sequential.0"} and found["other"] == {"Sequential.1"}


def test_two_trainers_at_once(sim: SimDevice) -> None:
    models = [Block(f"t{i}", *[Leaf(f"t{i}_{k}") for k in range(5)]) for i in range(2)]

    def train(model: nn.Module) -> None:
        for _ in range(100):
            model()

    def program() -> None:
        threads = [threading.Thread(target=train, args=(model,)) for model in models]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    found = modules_of(profiled(program))
    roots = {str(i): found[f"t{i} before"].pop() for i in range(2)}
    assert sorted(roots.values()) == ["Block", "Block#2"]
    for i, k in itertools.product(range(2), range(5)):
        assert found[f"t{i}_{k}"] == {f"{roots[str(i)]}.parts.{k}"}


def test_a_module_made_in_a_forward(sim: SimDevice) -> None:
    class Careless(nn.Module):
        def forward(self) -> None:
            Leaf("made")()

    result = profiled(*[Sequential(Leaf(), Careless())[1]] * 50)
    assert modules_of(result)["made"] == {"Leaf"}


def test_an_object_that_comes_to_lie_where_another_died(sim: SimDevice) -> None:
    kinds = [type(f"Kind{i}", (Leaf,), {}) for i in range(7)]

    def program() -> None:
        for i in range(500):
            kinds[i % 7](f"k{i % 7}")()

    found = modules_of(profiled(program))
    assert found == {f"k{i}": {f"Kind{i}"} for i in range(7)}
    threads = [threading.Thread(target=program) for _ in range(3)]
    found = modules_of(profiled(*[t.start for t in threads], *[t.join for t in threads]))
    for i in range(7):
        assert found[f"k{i}"] <= {f"Kind{i}", f"Kind{i}#2", f"Kind{i}#3"}


def test_a_cycle_that_is_collected(sim: SimDevice) -> None:
    def program() -> None:
        model = Block("b", Leaf("a"))
        model.__dict__["me"] = model
        thread = threading.Thread(target=model)  # where nobody can look at once
        thread.start()
        thread.join()
        del model, thread
        gc.collect()

    found = modules_of(profiled(program))
    assert found["a"] <= {"Block.parts.0", UNATTRIBUTED}  # which of them is told of first is the collector's choice
    assert found["b before"] <= {"Block", UNATTRIBUTED}


class TestNeverAGuess:
    def test_moved(self, sim: SimDevice) -> None:
        model = Block("b", Leaf("stays"), Leaf("moves"))

        def move() -> None:
            model.elsewhere = model.parts[1]
            del model.parts[1]

        found = modules_of(profiled(model, move, lambda: model.elsewhere()))
        assert found["moves"] == {UNATTRIBUTED}
        assert found["stays"] == {"Block.parts.0"} and found["b after"] == {"Block"}

    def test_deleted(self, sim: SimDevice) -> None:
        model = Block("b", Leaf("stays"), Leaf("goes"))

        def delete() -> None:
            del model.parts[1]

        found = modules_of(profiled(model, delete, model))
        assert found["goes"] == {"Block.parts.1"}  # there it was as long as it was
        assert found["stays"] == {"Block.parts.0"}

    def test_a_part_that_outlives_its_model(self, sim: SimDevice) -> None:
        models = [Block("b", Leaf("part"))]
        part = models[0].parts[0]
        result = profiled(lambda: models[0](), models.clear, part)
        assert list(result.kernels["module"]) == ["Block", "Block.parts.0", "Block", "Leaf"]

    def test_wrapped(self, sim: SimDevice) -> None:
        model = Block("b", Leaf("a"))
        wrapped: list[nn.Module] = []
        result = profiled(model, lambda: wrapped.append(nn.DataParallel(model)), lambda: wrapped[0]())
        assert modules_of(result)["a"] == {"Block.parts.0"}
        assert modules_of(profiled(wrapped[0]))["a"] == {"DataParallel.module.parts.0"}

    def test_its_deaths_are_not_told(self, sim: SimDevice) -> None:
        class Hides(Leaf):
            def __del__(self) -> None:
                pass

        def program() -> None:
            for _ in range(20):
                Hides("hides")()
                Leaf("plain")()

        model = Block("b", Hides("kept"), Leaf("beside"))
        found = modules_of(profiled(program, model))
        assert found["hides"] == found["kept"] == {UNATTRIBUTED}
        assert found["plain"] == {"Leaf"} and found["beside"] == {"Block.parts.1"}

    def test_the_path_is_hostile(self, sim: SimDevice) -> None:
        model = Sequential()
        model._modules["a.b"] = Leaf("dots")
        model._modules["\ud800"] = Leaf("surrogate")
        model._modules["(module 1)"] = Leaf("number")
        model._modules[3] = Leaf("no text")  # type: ignore[index]
        found = modules_of(profiled(model))
        assert found["number"] == {"Sequential.(module 1)"}
        assert found["no text"] == {"Leaf"}
        assert found["surrogate"] <= {"Sequential.?", UNATTRIBUTED}
        assert found["dots"] <= {"Sequential.a.b", UNATTRIBUTED}


def test_hooks_and_forwards_that_raise(sim: SimDevice) -> None:
    def raises(*_: Any) -> None:
        sim.launch("in hook")
        raise ValueError("hook")

    model = Block("b", Leaf("a"))
    hook = model.parts[0].register_forward_hook(raises)

    def caught() -> None:
        with pytest.raises(ValueError, match="hook"):
            model()

    found = modules_of(profiled(caught, lambda: sim.launch("outside"), hook.remove, model))
    assert found["in hook"] == found["a"] == {"Block.parts.0"}
    assert found["outside"] == {""} and found["b after"] == {"Block"}


def test_a_checkpointed_block_runs_again_in_backward(sim: SimDevice) -> None:
    model = Sequential(nn.Linear(4, 4), Block("b", Leaf("a"), nn.Linear(4, 4)))

    def program() -> None:
        y = checkpoint(model[1], model[0](torch.ones(2, 4)), use_reentrant=False)
        sim.launch("between")
        y.sum().backward()

    result = profiled(program)
    assert list(result.kernels["name"][result.kernels["name"] == "a"]) == ["a", "a"]
    assert modules_of(result)["a"] == {"Sequential.1.parts.0"}
    assert modules_of(result)["between"] == {""}


def test_compiled(sim: SimDevice) -> None:
    """What a compiled model calls in Python is where it is; the wrapper is the outermost module."""
    torch._dynamo.reset()
    leaf = Leaf("a")
    leaf.forward = torch.compiler.disable(leaf.forward)  # type: ignore[method-assign]
    model = Sequential(nn.Linear(4, 4), leaf)
    compiled = torch.compile(model, backend="eager")
    found = modules_of(profiled(*[lambda: compiled(torch.ones(2, 4))] * 3))
    assert found["a"] == {"OptimizedModule._orig_mod.1"}


def test_a_graph_of_the_program_is_a_module(sim: SimDevice) -> None:
    traced, x = torch.fx.symbolic_trace(nn.Softplus()), torch.ones(2, 4)
    with cuptiprof.profile(device="sim", sources="modules") as prof:
        traced(x)
    assert isinstance(traced, torch.fx.GraphModule) and set(prof.result().kernels["module"]) == {"Softplus"}


def test_result_of_each_cycle_of_a_schedule(sim: SimDevice) -> None:
    model = Block("b", Leaf("a"))
    results = []
    with cuptiprof.profile(
        device="sim",
        sources="modules",
        schedule=cuptiprof.schedule(wait=1, warmup=1, active=1, repeat=2),
        on_ready=lambda p: results.append(p.result()),
    ) as prof:
        for _ in range(6):
            model()
            prof.step()
    assert [modules_of(r)["a"] for r in results] == [{"Block.parts.0"}] * 2


@pytest.mark.parametrize("keep", ["first", "spill"])
def test_saved_and_spilled(sim: SimDevice, tmp_path: Any, keep: str) -> None:
    model = Block("b", Leaf("a"))
    result = profiled(*[model] * 200, keep=keep, spill_dir=tmp_path / "spill", budget="8 MB")
    result.save(tmp_path / "run")
    assert modules_of(cuptiprof.open(tmp_path / "run")) == modules_of(result) == said(model)


def test_the_class_is_left_as_it_was(sim: SimDevice) -> None:
    before = dict(vars(nn.Module))
    profiled(Leaf())
    with pytest.raises(ZeroDivisionError), cuptiprof.profile(device="sim", sources="modules"):
        assert "__del__" in vars(nn.Module)
        _ = 1 / 0
    dropped = cuptiprof.profile(device="sim", sources="modules").start()
    del dropped
    gc.collect()
    assert dict(vars(nn.Module)) == before
    assert _refusals(nn.Module) == []


def _refusals(module_class: Any) -> list[str]:
    try:
        call_of_modules(module_class)
    except SessionError as e:
        return [str(e), e.hint]
    return []


def test_a_torch_that_calls_modules_in_another_way_is_refused() -> None:
    class Other:
        pass

    def cell(self: Any) -> Any:
        return lambda: self

    def other(self: Any) -> int:
        return 0

    class Cell:
        _wrapped_call_impl = cell

    class Unlike:
        _wrapped_call_impl = other

    class Tells:
        _wrapped_call_impl = nn.Module._wrapped_call_impl

        def __del__(self) -> None: ...

    for module_class in (Other, Cell, Unlike, Tells):
        what, hint = _refusals(module_class)
        assert "modules" in hint and ("PyTorch" in what or "__del__" in what)


def test_torch_that_comes_later(sim: SimDevice) -> None:
    script = """
import sys, cuptiprof
with cuptiprof.profile(device="sim", sources="modules") as prof:
    assert "torch" not in sys.modules
    from module_programs import Block, Leaf, modules_of
    Block("b", Leaf("a"))()
print(modules_of(prof.result())["a"])
with cuptiprof.profile(device="sim", sources="modules") as prof:
    pass
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=200, cwd="sim")
    assert done.stdout == "{'Block.parts.0'}\n", done.stderr
