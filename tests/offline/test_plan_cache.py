"""Plans kept on disk: found again, never trusted, never too many. Made by NVIDIA's own libcupti 13.0."""

from __future__ import annotations

import os
import struct
import threading
from pathlib import Path

import pytest

from cuptiprof import _core
from cuptiprof.errors import MetricError

pytest_plugins = ["nvidia_libraries"]

METRICS = ["dram__bytes_read.sum", "l1tex__t_sector_hit_rate.pct", "sm__inst_executed.sum"]
HEADER = 24  # magic, length of the rest, its checksum


@pytest.fixture(scope="module")
def library(cupti_13_0: str) -> _core.CuptiLibrary:
    return _core.load_cupti(cupti_13_0, "test")


def plan(library: _core.CuptiLibrary, folder: Path, metrics: list[str] = METRICS) -> list[_core.PassGroup]:
    return _core.MetricPlanner(library, "GH100", cache_dir=str(folder)).plan(metrics)


def fnv1a(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def sealed(body: bytes) -> bytes:
    return b"CPPLAN01" + struct.pack("<QQ", len(body), fnv1a(body)) + body


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
    marked = sealed(data[HEADER:].replace(image, bytes(len(image))))
    other = with_file(tmp_path / "other", cached, marked)
    [group] = plan(library, other.parent, METRICS[::-1])
    assert (group.image, group.passes, group.metrics) == (bytes(len(image)), 1, sorted(METRICS))
    assert other.read_bytes() == marked


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: b"",
        lambda d: d[:7],
        lambda d: d[:HEADER],
        lambda d: d[: len(d) // 2],
        lambda d: d[:-1],
        lambda d: d + b"\0",
        lambda d: b"CPPLAN02" + d[8:],
        lambda d: d[:8] + struct.pack("<Q", 2**63) + d[16:],
        lambda d: d[:-40] + bytes([d[-40] ^ 1]) + d[-39:],
        lambda d: sealed(d[HEADER:].replace(b"GH100", b"GA100", 1)),  # the plan of another chip
        lambda d: sealed(struct.pack("<I", 2**32 - 1) + d[HEADER + 4 :]),  # a length beyond the end
        lambda d: sealed(d[HEADER:].replace(struct.pack("<II", 1, 3), struct.pack("<II", 1, 2**32 - 1))),
        lambda d: sealed(d[HEADER:].replace(struct.pack("<II", 1, 3), struct.pack("<II", 0, 3))),  # no passes
        lambda d: sealed(d[HEADER:] + b"more"),
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
    body = data[HEADER:]
    at = body.rindex(b"sm__inst_executed.sum")
    bad = sealed(body[:at] + b"sm__inst_executed.max" + body[at + 21 :])
    file = with_file(tmp_path / "bad", cached, bad)
    [group] = plan(library, file.parent)
    assert (group.image, group.metrics) == (image, sorted(METRICS))


def test_files_that_others_could_have_written_are_ignored(
    library: _core.CuptiLibrary, cached: tuple[Path, bytes, bytes], tmp_path: Path
) -> None:
    _, data, image = cached
    marked = sealed(data[HEADER:].replace(image, bytes(len(image))))
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
    planner = _core.MetricPlanner(library, "GH100", cache_dir=folder)
    assert planner.plan(METRICS)[0].image == planner.plan(METRICS)[0].image


def test_what_a_plan_depends_on_has_plans_of_its_own(library: _core.CuptiLibrary, tmp_path: Path) -> None:
    folder = tmp_path / "plans"
    for chip in ("GH100", "GA100"):
        for sampling in (False, True):
            planner = _core.MetricPlanner(library, chip, sampling, cache_dir=str(folder))
            planner.plan(METRICS)
            planner.plan(METRICS[:2])
    assert len(list(folder.iterdir())) == 8
    _core.MetricPlanner(library, "GH100", cache_dir=str(folder)).one_pass_groups(METRICS)
    assert len(list(folder.iterdir())) == 9


def test_errors_are_not_kept(library: _core.CuptiLibrary, tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(MetricError):
            plan(library, tmp_path / "plans", ["nonsense.sum"])
    assert not (tmp_path / "plans").exists()


def test_the_folder_stays_small(library: _core.CuptiLibrary, tmp_path: Path) -> None:
    limit = 16_000
    planner = _core.MetricPlanner(library, "GH100", cache_dir=str(tmp_path), cache_bytes=limit)
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
