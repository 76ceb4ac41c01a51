"""Handlers that NVTX calls: what they give back, and what they make of what programs pass, however wrong."""

from __future__ import annotations

import ctypes
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from nvtx_copy import ASCII, WIDE, NvtxCopy, Payload, said

import cuptiprof
from cuptiprof.data.result import Result
from cuptiprof.device.nvtx_injection import nvtx_library
from cuptiprof.sim.sim_device import SimDevice

NOTHING_TO_POP, NO_TRACKING = -1, -2


@pytest.fixture(autouse=True)
def environment_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVTX_INJECTION64_PATH", str(nvtx_library()))


@pytest.fixture(scope="module")
def nvtx() -> NvtxCopy:
    return NvtxCopy(str(nvtx_library()))


@pytest.fixture(params=["no session", "launch", "full"])
def session(request: pytest.FixtureRequest, sim: SimDevice) -> Iterator[None]:
    if request.param == "no session":
        yield
        return
    with cuptiprof.profile(device="sim", sources={"nvtx": request.param}):
        yield


def recorded(nvtx: NvtxCopy, work: object, level: str = "full") -> Result:
    with cuptiprof.profile(device="sim", sources={"nvtx": level}) as prof:
        work(nvtx)  # type: ignore[operator]
    return prof.result()


def names(result: Result) -> list[str]:
    return [str(n) for n in result.regions["name"]]


def test_levels(nvtx: NvtxCopy, session: None) -> None:
    a = nvtx.create(b"levels")
    ex = said(b"x")
    at = ctypes.byref(ex)
    assert nvtx.pop() == NOTHING_TO_POP and nvtx.domain_pop(a) == NOTHING_TO_POP
    assert [nvtx.push(b"p"), nvtx.push_ex(at), nvtx.push_wide("w")] == [0, 1, 2]
    assert [nvtx.domain_push(a, at), nvtx.domain_push(a, at)] == [0, 1], "a domain has a stack of its own"
    assert nvtx.domain_push(None, at) == 3, "no domain is the default one"
    assert nvtx.pop() == 3 and nvtx.domain_pop(a) == 1
    assert nvtx.pop() == 2 and nvtx.domain_pop(a) == 0
    assert nvtx.domain_pop(None) == 1 and nvtx.pop() == 0
    assert nvtx.pop() == NOTHING_TO_POP and nvtx.domain_pop(a) == NOTHING_TO_POP


def test_levels_are_a_threads_own(nvtx: NvtxCopy, session: None) -> None:
    seen: list[int] = []
    assert nvtx.push(b"here") == 0
    thread = threading.Thread(target=lambda: seen.extend([nvtx.push(b"there"), nvtx.pop(), nvtx.pop()]))
    thread.start()
    thread.join()
    assert seen == [0, 0, NOTHING_TO_POP] and nvtx.pop() == 0


def test_range_numbers_are_never_the_same(nvtx: NvtxCopy, session: None) -> None:
    ex = said(b"x")
    numbers = [nvtx.start(b"a") for _ in range(10)] + [nvtx.domain_start(None, ctypes.byref(ex)) for _ in range(10)]
    assert len(set(numbers)) == 20 and 0 not in numbers
    for number in numbers:
        nvtx.end(number)
    nvtx.end(0)
    nvtx.end(2**64 - 1)


def test_the_same_text_has_the_same_handle(nvtx: NvtxCopy) -> None:
    assert nvtx.create(b"one") == nvtx.create(b"one") != nvtx.create(b"two")
    one, two = nvtx.create(b"one"), nvtx.create(b"two")
    assert nvtx.register(one, b"s") == nvtx.register(one, b"s") != nvtx.register(two, b"s")
    nvtx.destroy(one)
    assert nvtx.create(b"one") == one, "others may still have it"
    assert nvtx.create(b"") is None, "the default domain"


@pytest.mark.parametrize("handle", [1, 8, 0xDEAD_BEEF_0000, 2**64 - 8])
def test_handles_that_are_not_ours(nvtx: NvtxCopy, session: None, handle: int) -> None:
    ex = said(handle)
    assert nvtx.domain_push(handle, ctypes.byref(ex)) == 0
    assert nvtx.pop() == 0, "they are the default domain"
    nvtx.domain_mark(handle, ctypes.byref(ex))
    nvtx.domain_name_category(handle, 1, b"x")


def test_a_handle_inside_of_ours(nvtx: NvtxCopy, sim: SimDevice) -> None:
    domain = nvtx.create(b"inside")
    string = nvtx.register(domain, b"text")
    wrong = said(string + 1)
    result = recorded(nvtx, lambda n: (n.domain_push(domain + 1, ctypes.byref(wrong)), n.pop()))
    assert names(result) == [""] and result.regions["domain"][0] == ""


@pytest.mark.parametrize(
    "fields",
    [{"size": 0}, {"size": 4}, {"size": 47}, {"version": 0}, {"message_type": 9}, {"message_type": -1}, {"payload_type": 99},
     {"payload_type": -0x2042FFF7}, {"color_type": 7}],
)  # fmt: skip
def test_attributes_that_say_less(nvtx: NvtxCopy, sim: SimDevice, fields: dict[str, int]) -> None:
    ex = said(b"named", category=3, color_type=1, color=0x11223344, payload_type=1, payload=Payload(u64=5))
    for name, value in fields.items():
        setattr(ex, name, value)
    result = recorded(nvtx, lambda n: (n.push_ex(ctypes.byref(ex)), n.pop()))
    (name,) = names(result)
    text = result.regions["metadata"][0]
    found = json.loads(text) if text else {}
    full = {"category": 3, "payload": 5, "color": "#11223344"}
    if "size" in fields or "version" in fields:
        assert (name, found) == ("", {})
    elif "message_type" in fields:
        assert (name, found) == ("", full)
    else:
        gone = "payload" if "payload_type" in fields else "color"
        assert (name, found) == ("named", {k: v for k, v in full.items() if k != gone})


def test_no_attributes_and_no_text(nvtx: NvtxCopy, sim: SimDevice) -> None:
    result = recorded(nvtx, lambda n: (n.push_ex(None), n.push(None), n.pop(), n.pop(), n.mark_ex(None), n.mark(None)))
    assert names(result) == ["", ""] and list(result.markers["name"]) == ["", ""]


def test_a_newer_structure_begins_as_ours(nvtx: NvtxCopy, sim: SimDevice) -> None:
    ex = said(b"newer", version=4, size=96)
    assert names(recorded(nvtx, lambda n: (n.push_ex(ctypes.byref(ex)), n.pop()))) == ["newer"]


@pytest.mark.parametrize(
    ("kind", "payload", "value"),
    [(1, Payload(u64=2**64 - 1), 2**64 - 1), (2, Payload(i64=-5), -5), (3, Payload(f64=2.0), 2.0), (3, Payload(f64=1e300), 1e300),
     (3, Payload(f64=float("inf")), float("inf")), (4, Payload(u32=2**32 - 1), 2**32 - 1), (5, Payload(i32=-7), -7),
     (6, Payload(f32=0.5), 0.5)],
)  # fmt: skip
def test_payloads(nvtx: NvtxCopy, sim: SimDevice, kind: int, payload: Payload, value: float) -> None:
    ex = said(b"p", payload_type=kind, payload=payload)
    result = recorded(nvtx, lambda n: (n.push_ex(ctypes.byref(ex)), n.pop()))
    read = json.loads(result.regions["metadata"][0])["payload"]
    assert read == value and type(read) is type(value)


def test_wide_texts(nvtx: NvtxCopy, sim: SimDevice) -> None:
    text = ctypes.create_unicode_buffer("größe 😀")
    ex = said(message_type=WIDE, message=ctypes.addressof(text))
    odd = (ctypes.c_uint32 * 4)(0x41, 0xD800, 0x7FFFFFFF, 0)
    broken = said(message_type=WIDE, message=ctypes.addressof(odd))
    result = recorded(nvtx, lambda n: (n.push_ex(ctypes.byref(ex)), n.pop(), n.push_ex(ctypes.byref(broken)), n.pop()))
    assert names(result) == ["größe 😀", "A\ufffd\ufffd"]


def test_bytes_that_are_no_text(nvtx: NvtxCopy, sim: SimDevice) -> None:
    nvtx.name_category(77, b'c\xff"\\\x01')
    ex = said(b"n\xff", category=77)
    result = recorded(nvtx, lambda n: (n.push_ex(ctypes.byref(ex)), n.pop()))
    assert names(result) == ["n\\xff"]
    assert json.loads(result.regions["metadata"][0]) == {"category": 'c\ufffd"\\\x01'}


def test_long_texts_are_cut(nvtx: NvtxCopy, sim: SimDevice) -> None:
    result = recorded(nvtx, lambda n: (n.push(b"a" * 100_000), n.pop(), n.push_wide("ü" * 100_000), n.pop()))
    assert [len(n) for n in names(result)] == [4096, 2048]


def test_more_than_can_be_open(nvtx: NvtxCopy, session: None) -> None:
    levels = [nvtx.push(b"deep") for _ in range(65_536 + 3)]
    assert levels == [*range(65_536), *[NO_TRACKING] * 3]
    assert [nvtx.pop() for _ in range(65_536)] == list(range(65_535, -1, -1))
    assert nvtx.pop() == NOTHING_TO_POP


def test_ranges_of_several_domains_cross(nvtx: NvtxCopy, sim: SimDevice) -> None:
    a, b = nvtx.create(b"a"), nvtx.create(b"b")
    x, y = said(b"x"), said(b"y")

    def work(n: NvtxCopy) -> None:
        n.domain_push(a, ctypes.byref(x))
        n.domain_push(b, ctypes.byref(y))
        n.domain_pop(a)
        sim.launch("after")
        n.domain_pop(b)

    for level in ("full", "launch"):
        result = recorded(nvtx, work, level)
        assert result.kernels["nvtx"][0] == {"full": "a@x/b@y", "launch": "b@y"}[level]
        assert len(result.regions) == (2 if level == "full" else 0)


def test_a_range_that_crosses_a_session(nvtx: NvtxCopy, sim: SimDevice) -> None:
    """What was pushed before is popped after without harm to what is open."""
    nvtx.push(b"before")
    for level in ("launch", "full", "launch"):
        with cuptiprof.profile(device="sim", sources={"nvtx": level}) as prof:
            nvtx.push(b"in it")
            sim.launch("k")
        assert prof.result().kernels["nvtx"][0] == "in it", "what was open before is not known"
    with cuptiprof.profile(device="sim", sources={"nvtx": "launch"}) as prof:
        assert [nvtx.pop(), nvtx.pop()] == [3, 2]
        nvtx.push(b"new")
        sim.launch("k")
        assert [nvtx.pop(), nvtx.pop(), nvtx.pop()] == [2, 1, 0]
    assert prof.result().kernels["nvtx"][0] == "new"


def test_nothing_is_heard_while_paused(nvtx: NvtxCopy, sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", sources=["nvtx"]) as prof:
        prof.pause()
        nvtx.push(b"unheard")
        nvtx.mark(b"unheard")
        prof.resume()
        nvtx.pop()
        nvtx.push(b"heard")
        nvtx.pop()
    assert names(prof.result()) == ["heard"] and len(prof.result().markers) == 0


def test_a_session_without_the_source_hears_nothing(nvtx: NvtxCopy, sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim") as prof:
        nvtx.push(b"x")
        sim.launch("k")
        nvtx.mark(b"x")
        nvtx.pop()
    result = prof.result()
    assert len(result.regions) == len(result.markers) == 0 and result.kernels["nvtx"][0] == ""


def test_torch_writes_into_the_name(nvtx: NvtxCopy, sim: SimDevice) -> None:
    """torch.autograd.profiler.emit_nvtx: the operator's name is the range's, and the rest is beside it."""
    texts = {
        b"aten::mul, seq = 5": ("aten::mul", {"seq": 5}),
        b"aten::mul, op_id = 9": ("aten::mul", {"op_id": 9}),
        b"MulBackward0, seq = 12, op_id = 3": ("MulBackward0", {"seq": 12, "op_id": 3}),
        b"aten::add, seq = 0, sizes = [[2, 3], []]": ("aten::add", {"seq": 0, "sizes": "[[2, 3], []]"}),
        b"aten::add, op_id = 1, sizes = [[2]], input_op_ids = [(0,0), (0,-1)]": (
            "aten::add", {"op_id": 1, "sizes": "[[2]]", "input_op_ids": "[(0,0), (0,-1)]"}),
        b"load, seq = many": ("load, seq = many", {}),
        b"a, b": ("a, b", {}),
        b", seq = 5": (", seq = 5", {}),
        b"x, seq = 5, then": ("x, seq = 5, then", {}),
    }  # fmt: skip

    def work(n: NvtxCopy) -> None:
        for text in texts:
            n.push(text)
            n.pop()

    result = recorded(nvtx, work)
    metadata = [json.loads(m) if m else {} for m in result.regions["metadata"]]
    assert list(zip(names(result), metadata, strict=True)) == list(texts.values())


def test_operators_by_the_million_share_a_name(nvtx: NvtxCopy, sim: SimDevice) -> None:
    def work(n: NvtxCopy) -> None:
        for i in range(5_000):
            n.push(b"aten::mul, seq = %d" % i)
            n.pop()

    result = recorded(nvtx, work)
    assert set(names(result)) == {"aten::mul"} and result.losses["texts_lost"] == 0


def test_texts_beyond_the_budget(nvtx: NvtxCopy, sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", sources=["nvtx"], budget="8 MB") as prof:
        for i in range(3_000):
            nvtx.push(b"%d" % i + b"x" * 200)
            nvtx.pop()
    result = prof.result()
    assert len(result.regions) == 3_000 and "(other)" in names(result) and result.losses["texts_lost"] > 0


def test_a_forked_child_goes_on(nvtx: NvtxCopy, sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", sources=["nvtx"]) as prof:
        nvtx.push(b"parent's")
        pid = os.fork()
        if pid == 0:
            good = (
                nvtx.push(b"child's") == 1 and nvtx.pop() == 1 and nvtx.pop() == 0 and nvtx.create(b"child") is not None
            )
            nvtx.end(nvtx.start(b"r"))
            os._exit(0 if good else 1)
        assert os.waitpid(pid, 0)[1] == 0
        nvtx.pop()
    assert names(prof.result()) == ["parent's"]


def test_a_registry_that_is_full() -> None:
    """In a process of its own: what finds no room stands for "(other)"."""
    import subprocess
    import sys

    code = """
import ctypes, sys
sys.path.insert(0, ".")
import cuptiprof
from cuptiprof.device.nvtx_injection import nvtx_library
from nvtx_copy import NvtxCopy, said
n = NvtxCopy(str(nvtx_library()))
domains = [n.create(b"d%d" % i) for i in range(1100)]
assert len(set(domains)) == 1023 and domains[-1] == domains[-2], len(set(domains))
strings = [n.register(domains[0], b"s%d" % i) for i in range(66_000)]
assert len(set(strings)) == 65_536 and strings[-1] == strings[-2]
ex = said(strings[-1])
with cuptiprof.profile(device="sim", sources=["nvtx"]) as prof:
    n.domain_push(domains[-1], ctypes.byref(ex))
    n.domain_pop(domains[-1])
r = prof.result().regions
assert (r["name"][0], r["domain"][0]) == ("(other)", "(other)"), (r["name"][0], r["domain"][0])
assert prof.result().losses["texts_lost"] > 0
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_an_unknown_message_type_reads_no_pointer(nvtx: NvtxCopy, session: None) -> None:
    ex = said(message=16)  # no type: the pointer is not looked at
    assert nvtx.push_ex(ctypes.byref(ex)) == 0 and nvtx.pop() == 0
    assert said(b"x").message_type == ASCII


def test_names_of_threads_and_devices(nvtx: NvtxCopy, sim: SimDevice, tmp_path: Path) -> None:
    tid = threading.get_native_id()
    nvtx.name_thread(tid, b"the \xfftrainer")
    nvtx.name_device(0, b"left")
    result = recorded(nvtx, lambda n: (n.push(b"x"), sim.launch("k"), n.pop()))
    assert result.metadata["nvtx_names"]["threads"][str(tid)] == "the \\xfftrainer"
    assert result.metadata["nvtx_names"]["devices"] == {"0": "left"}
    result.save(tmp_path / "run")
    again = cuptiprof.open(tmp_path / "run")
    assert again.metadata["nvtx_names"] == result.metadata["nvtx_names"]
    again.export(tmp_path / "trace.json")
    assert f"the \\\\xfftrainer ({tid})" in (tmp_path / "trace.json").read_text()
    for odd in ("text", {"threads": 5}, {"threads": {"x": "y", str(tid): 7}}):
        again.metadata["nvtx_names"] = odd
        again.export(tmp_path / "trace.json", overwrite=True)
        assert f'"thread {tid}"' in (tmp_path / "trace.json").read_text()
    with cuptiprof.profile(device="sim") as prof:
        pass
    assert "nvtx_names" not in prof.result().metadata
