"""What ranks do not do together, as torch's own fr_trace has it, of dumps that are made here."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from dump_entries import Dumps, dump, entry, write
from report_results import training_step

import cuptiprof
from cuptiprof.cli import main
from cuptiprof.io.collective_dump import read_collective_dumps
from cuptiprof.job.stuck_collectives import StuckCollective, stuck_collectives

GROUPS = {"0": ("default_pg", [0, 1, 2, 3]), "5": ("tp", [0, 1]), "6": ("tp", [2, 3])}
PROBLEMS = {
    "COLLECTIVE_TYPE_MISMATCH": "operation", "SIZE_OR_SYNTAX_MISMATCH": "sizes",
    "COLLECTIVE_DTYPE_MISMATCH": "dtypes", "COLLECTIVE_STATE_MISMATCH": "state",
}  # fmt: skip


def fr_trace(folder: Path) -> dict[tuple[str, int], tuple[str, set[int]]]:
    """The first bad collective of each group by torch: (group, number) -> problem, ranks."""
    from torch.distributed.flight_recorder.components.builder import build_db
    from torch.distributed.flight_recorder.components.config_manager import JobConfig
    from torch.distributed.flight_recorder.components.loader import read_dir

    arguments = JobConfig().parse_args([str(folder), "--allow-incomplete-ranks"])
    details, version = read_dir(arguments)
    details = dict(sorted(details.items()))
    found: dict[str, tuple[int, str, set[int]]] = {}
    for one in build_db(details, arguments, version).collectives:
        if one.group_id in found:
            continue
        if one.missing_ranks:
            found[one.group_id] = one.collective_seq_id, "missing", set(one.missing_ranks)
        elif not one.pass_check:
            states = {rank: PROBLEMS[of.type_of_mismatch.state.name] for rank, of in one.mismatch_collectives.items()}
            (problem,) = set(states.values())
            found[one.group_id] = one.collective_seq_id, problem, set(states)
    return {(group, number): (problem, ranks) for group, (number, problem, ranks) in found.items()}


def program(rng: random.Random) -> tuple[Dumps, str, int]:
    """Ranks that do the same, but for one thing; the group it is in, and the collective."""
    wrong_group = rng.choice(["0", "6"])
    rank = rng.choice(GROUPS[wrong_group][1][1:])
    count, at = rng.randint(2, 6), 0
    at = rng.randint(1, count)
    kind = rng.choice(["missing", "operation", "sizes", "dtypes", "state", "nothing"])
    entries: dict[int, list[dict[str, Any]]] = {r: [] for r in range(4)}
    for number in range(1, count + 1):
        for name, (desc, ranks) in GROUPS.items():
            operation = rng.choice(["all_reduce", "broadcast", "reduce"])
            for r in ranks:
                if name == wrong_group and r == rank and kind == "missing" and number >= at:
                    continue
                change: dict[str, Any] = {}
                if name == wrong_group and number == at and r == rank:
                    change = {
                        "operation": {"operation": "barrier"}, "sizes": {"input_sizes": [[9]], "output_sizes": [[9]]},
                        "dtypes": {"input_dtypes": ["Half"], "output_dtypes": ["Half"]}, "state": {"state": "scheduled"},
                    }.get(kind, {})  # fmt: skip
                own = {"operation": operation, **change}
                entries[r].append({**entry(number, group=(name, desc), **own), "record_id": len(entries[r])})
    dumps = {r: dump(entries[r], {n: g for n, g in GROUPS.items() if r in g[1]}) for r in range(4)}
    return dumps, wrong_group if kind != "nothing" else "", at


def test_as_torch_has_it(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    rng = random.Random(41)
    seen = set()
    for i in range(40):
        dumps, group, at = program(rng)
        folder = write(tmp_path / str(i), dumps)
        ours = {
            (next(n for n, (_, ranks) in GROUPS.items() if set(one.ranks) | set(one.waiting) == set(ranks)), one.number):
            (one.problem, set(one.ranks))
            for one in stuck_collectives(read_collective_dumps(folder)) if one.problem != "unfinished"
        }  # fmt: skip
        assert ours == fr_trace(folder), (i, group, at)
        assert bool(ours) == bool(group)
        seen |= {problem for problem, _ in ours.values()}
    assert seen == {"missing", "operation", "sizes", "dtypes", "state"}


def found(dumps: Dumps, folder: Path) -> list[StuckCollective]:
    return stuck_collectives(read_collective_dumps(write(folder, dumps)))


def hung(rank: int, numbers: range, *, last: str = "started") -> dict[str, Any]:
    entries = [entry(n) for n in numbers]
    entries[-1] = {**entries[-1], "state": last, "retired": False}
    return dump(entries, {"0": ("default_pg", [0, 1, 2, 3])})


def test_told(tmp_path: Path) -> None:
    dumps = {rank: hung(rank, range(1, 42)) for rank in range(3)}
    dumps[3] = dump([entry(n) for n in range(1, 41)], {"0": ("default_pg", [0, 1, 2, 3])})
    (one,) = found(dumps, tmp_path / "a")
    assert one.text == "rank 3 never called all_reduce #41 of group default_pg; ranks 0-2 wait in it"
    assert (one.problem, one.number, one.ranks, one.waiting, one.after) == ("missing", 41, (3,), (0, 1, 2), 0)
    assert one.where == "train.py:12 step" and one.time_ns == 10**18 + 41

    del dumps[3]
    (one,) = found(dumps, tmp_path / "b")
    assert one.text == "there is no dump of rank 3; ranks 0-2 wait in all_reduce #41 of group default_pg"
    (one,) = found({rank: hung(rank, range(1, 5)) for rank in range(4)}, tmp_path / "c")
    assert one.text == "all ranks are in all_reduce #4 of group default_pg (started)"
    dumps = {rank: hung(rank, range(1, 5), last="scheduled" if rank == 0 else "started") for rank in range(4)}
    (one,) = found(dumps, tmp_path / "d")
    assert one.text == "rank 0 has all_reduce #4 of group default_pg scheduled; ranks 1-3: started"
    dumps = {rank: hung(rank, range(1, 5), last="completed") for rank in range(4)}
    assert found(dumps, tmp_path / "e") == []
    dumps[0]["entries"][1] |= {"input_sizes": [[8]], "output_sizes": [[8]]}  # the first rank is the odd one
    (one,) = found(dumps, tmp_path / "f")
    assert one.ranks == (0,) and "with other sizes ([[8]] to [[8]]) than ranks 1-3" in one.text


def test_what_the_rings_have_lost(tmp_path: Path) -> None:
    """Rank 1 has kept less: what it called before is not missing."""
    dumps = {rank: hung(rank, range(1 if rank != 1 else 20, 31), last="completed") for rank in range(4)}
    assert found(dumps, tmp_path / "a") == []
    dumps[2]["entries"].pop()
    (one,) = found(dumps, tmp_path / "b")
    assert one.text.startswith("rank 2 never called all_reduce #30")


def test_names_are_shown_not_obeyed(tmp_path: Path) -> None:
    evil = "\x1b[2J\u202e<script>"
    dumps = {
        rank: dump([entry(1, evil, group=("0", evil), state=state)], {"0": (evil, [0, 1])})
        for rank, state in ((0, "started"), (1, "scheduled"))
    }
    (one,) = found(dumps, tmp_path / "a")
    assert "\x1b" not in one.text + one.group + one.operation and "\u202e" not in one.text + one.group + one.operation


def test_the_view_of_a_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "job"
    for rank in range(2):
        result = training_step()
        result.metadata |= {"rank": rank, "distributed": {"rank": rank, "world_size": 4}}
        result.save_rank(folder)
    dumps = {rank: hung(rank, range(1, 9)) for rank in range(2)}
    dumps[2] = dump([entry(n) for n in range(1, 8)], {"0": ("default_pg", [0, 1, 2, 3])})
    write(folder, dumps)
    assert cuptiprof.open_job(folder).ranks == [0, 1]
    assert main(["job", str(folder), "--view", "stuck", "--format", "text"]) == 0
    out = capsys.readouterr().out
    assert "rank 2 never called all_reduce #8 of group default_pg; ranks 0, 1 wait in it" in out
    assert "train.py:12 step" in out and "No dump of rank 3" in out
    assert main(["job", str(folder), "--view", "stuck", "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["problem"], row["number"]) == ("missing", 8)
    (folder / "nccl_trace_rank_0").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    assert main(["job", str(folder), "--view", "stuck"]) == 1
    assert "more than plain values" in capsys.readouterr().err
