"""Plans kept on disk: found again, never trusted, never too many. Made by NVIDIA's own libcupti 13.0."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cuptiprof import _core
from cuptiprof.device.plan_cache import CachedPlanner
from cuptiprof.errors import MetricError

pytest_plugins = ["nvidia_libraries"]

METRICS = ["dram__bytes_read.sum", "l1tex__t_sector_hit_rate.pct", "sm__inst_executed.sum"]
DIGEST = 32  # SHA-256 of the rest


@pytest.fixture(scope="module")
def library(cupti_13_0: str) -> _core.CuptiLibrary:
    return _core.load_cupti(cupti_13_0, "test")


def plan(library: _core.CuptiLibrary, folder: Path, metrics: list[str] = METRICS) -> list[_core.PassGroup]:
    return CachedPlanner(library, "GH100", cache_dir=str(folder)).plan(metrics)


def sealed(body: bytes) -> bytes:
    return hashlib.sha256(body).digest() + body


def changed(data: bytes, change: Callable[[list[Any]], object]) -> bytes:
    """The file with `change` done to [key, [[metrics, image, passes], ...]] in it."""
    content = msgspec.msgpack.decode(data[DIGEST:])
    change(content)
    return sealed(msgspec.msgpack.encode(content))


def put(place: list[Any], index: int, value: object) -> None:
    place[index] = value


@pytest.fixture
def cached(library: _core.CuptiLibrary, tmp_path: Path) -> tuple[Path, bytes, bytes]:
    """The file of METRICS in a folder, its bytes, and the image in it."""
    [group] = plan(library, tmp_path / "made" / "plans")
    [file] = (tmp_path / "made" / "plans").iterdir()
    return file, file.read_bytes(), group.image


def with_file(folder: Path, cached: tuple[Path, bytes, bytes], data: bytes) -> Path:
    """A folder that no planner of this process has seen, holding `data` as the file of METRICS."""
    folder.mkdir(mode=0o700)
    file = folder / cached[0].name
    file.write_bytes(data)
    file.chmod(0o600)
    return file


def test_the_folder_is_made_and_is_private(cached: tuple[Path, bytes, bytes]) -> None:
    file, data, image = cached
    assert file.suffix == ".plan" and image in data
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_a_plan_is_found_again(library: _core.CuptiLibrary, cached: tuple[Path, bytes, bytes], tmp_path: Path) -> None:
    """The file holds an image that no planner would make, so that one is read and not made again."""
    _, data, image = cached
    marked = sealed(data[DIGEST:].replace(image, bytes(len(image))))
    other = with_file(tmp_path / "other", cached, marked)
    [group] = plan(library, other.parent, METRICS[::-1])
    assert (group.image, group.passes, group.metrics) == (bytes(len(image)), 1, sorted(METRICS))
    assert other.read_bytes() == marked


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: b"",
        lambda d: d[:7],
        lambda d: d[:DIGEST],
        lambda d: d[: len(d) // 2],
        lambda d: d[:-1],
        lambda d: d + b"\0",
        lambda d: b"CPPLAN02" + d[8:],
        lambda d: d[:-40] + bytes([d[-40] ^ 1]) + d[-39:],
        lambda d: sealed(b""),
        lambda d: sealed(d[DIGEST:-1]),
        lambda d: sealed(d[DIGEST:] + b"more"),
        lambda d: sealed(b"\xdd\xff\xff\xff\xff" + d[DIGEST + 1 :]),  # a list longer than any file
        lambda d: sealed(b"\x91" * 20_000),
        lambda d: sealed(d[DIGEST:].replace(b"GH100", b"\xff\xfe100", 1)),  # no UTF-8
        lambda d: changed(d, lambda f: put(f, 0, f[0].replace("GH100", "GA100"))),  # the plan of another chip
        lambda d: changed(d, lambda f: put(f[1][0], 2, 0)),  # no passes
        lambda d: changed(d, lambda f: put(f[1][0], 2, -1)),
        lambda d: changed(d, lambda f: put(f[1][0], 2, 2**32)),
        lambda d: changed(d, lambda f: put(f[1][0], 2, 1.5)),
        lambda d: changed(d, lambda f: put(f[1][0], 1, b"")),  # no image
        lambda d: changed(d, lambda f: put(f[1][0], 1, "image")),
        lambda d: changed(d, lambda f: put(f, 1, [])),
        lambda d: changed(d, lambda f: put(f, 1, {})),
        lambda d: changed(d, lambda f: f[1].append([[], b"x", 1])),
        lambda d: changed(d, lambda f: f[1].append(f[1][0])),  # each metric twice
        lambda d: changed(d, lambda f: f.append(1)),
    ],
)
def test_damaged_files_are_ignored_and_rewritten(
    library: _core.CuptiLibrary, cached: tuple[Path, bytes, bytes], tmp_path: Path, damage: object
) -> None:
    _, data, image = cached
    bad = damage(data)  # type: ignore[operator]
    assert bad != data
    file = with_file(tmp_path / "bad", cached, bad)
    [group] = plan(library, file.parent)
    assert (group.image, group.passes) == (image, 1)
    assert file.read_bytes() == data


def test_a_plan_must_hold_the_metrics_asked_for(
    library: _core.CuptiLibrary, cached: tuple[Path, bytes, bytes], tmp_path: Path
) -> None:
    """The key is right, the list of metrics in the group is not."""
    _, data, image = cached
    bad = changed(data, lambda f: put(f[1][0][0], 2, "sm__inst_executed.max"))
    file = with_file(tmp_path / "bad", cached, bad)
    [group] = plan(library, file.parent)
    assert (group.image, group.metrics) == (image, sorted(METRICS))


def test_files_that_others_could_have_written_are_ignored(
    library: _core.CuptiLibrary, cached: tuple[Path, bytes, bytes], tmp_path: Path
) -> None:
    _, data, image = cached
    marked = sealed(data[DIGEST:].replace(image, bytes(len(image))))
    writable = with_file(tmp_path / "writable", cached, marked)
    writable.chmod(0o666)
    linked = with_file(tmp_path / "linked", cached, marked)
    linked.rename(tmp_path / "target")
    linked.symlink_to(tmp_path / "target")
    pipe = with_file(tmp_path / "pipe", cached, b"")
    pipe.unlink()
    os.mkfifo(pipe)
    for file in (writable, linked, pipe):
        assert plan(library, file.parent)[0].image == image
        assert not file.is_symlink() and file.read_bytes() == data
    assert (tmp_path / "target").read_bytes() == marked


@pytest.mark.parametrize("folder", ["/proc/no/such/folder", "/dev/null", "/dev/null/plans", "a\0b"])
def test_a_folder_that_cannot_be_written_is_no_error(library: _core.CuptiLibrary, folder: str) -> None:
    planner = CachedPlanner(library, "GH100", cache_dir=folder)
    assert planner.plan(METRICS)[0].image == planner.plan(METRICS)[0].image


def test_what_a_plan_depends_on_has_plans_of_its_own(library: _core.CuptiLibrary, tmp_path: Path) -> None:
    folder = tmp_path / "plans"
    for chip in ("GH100", "GA100"):
        for sampling in (False, True):
            planner = CachedPlanner(library, chip, sampling, cache_dir=str(folder))
            planner.plan(METRICS)
            planner.plan(METRICS[:2])
    assert len(list(folder.iterdir())) == 8
    CachedPlanner(library, "GH100", cache_dir=str(folder)).one_pass_groups(METRICS)
    assert len(list(folder.iterdir())) == 9


def test_errors_are_not_kept(library: _core.CuptiLibrary, tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(MetricError):
            plan(library, tmp_path / "plans", ["nonsense.sum"])
    assert not (tmp_path / "plans").exists()


def test_the_folder_stays_small(library: _core.CuptiLibrary, tmp_path: Path) -> None:
    limit = 16_000
    planner = CachedPlanner(library, "GH100", cache_dir=str(tmp_path), cache_bytes=limit)
    (tmp_path / "mine.txt").write_bytes(bytes(2 * limit))
    names = [b + ".sum" for b in planner.base_metrics("counter") if b.startswith("smsp__inst")][:40]
    newest = ""
    for i, name in enumerate(names):
        before = set(os.listdir(tmp_path))
        planner.plan([name])
        [newest] = set(os.listdir(tmp_path)) - before
        os.utime(tmp_path / newest, (i, i))  # the clock of the file system is coarse
        assert sum(f.stat().st_size for f in tmp_path.glob("*.plan")) <= limit
    assert 3 < len(list(tmp_path.glob("*.plan"))) < len(names)
    assert (tmp_path / newest).exists() and (tmp_path / "mine.txt").exists()


def test_many_write_at_once(library: _core.CuptiLibrary, tmp_path: Path) -> None:
    folder = tmp_path / "plans"
    wrong: list[int] = []
    expected = plan(library, tmp_path / "other")[0].image
    barrier = threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        if plan(library, folder)[0].image != expected:
            wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and [f.suffix for f in folder.iterdir()] == [".plan"]
