"""A job that never ran: hosts of eight ranks, each step kernels and an all-reduce on every host, then one of the n-th ranks of all hosts.

What is wrong with it is known: clocks, a slow GPU, a slow host, a slow link.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cuptiprof.data.result import Result
from cuptiprof.data.tables import Strings, Table

Float64 = npt.NDArray[np.float64]
NAMES = ("gemm", "softmax", "layer_norm", "gelu")
_BASE_NS = np.array([180_000.0, 40_000.0, 25_000.0, 15_000.0])
_NCCL = "ncclDevKernel_AllReduce_Sum_f16_RING_LL"
_BYTES = 1 << 26


@dataclass
class GeneratedJob:
    """Parameters; factors of 1 and delays of 0 are sound.

    Attributes:
        ranks: a multiple of `per_host`.
        kernels: that compute, a step.
        gpu, link: rank -> factor of the time of kernels, of transfers in which it takes part.
        host_ns: rank -> what its host takes longer before each step, ns.
        offset_ns, drift: shape (ranks,): its clock says ``offset + (1 + drift) * t``.
    """

    ranks: int = 64
    per_host: int = 8
    steps: int = 60
    kernels: int = 8
    seed: int = 0
    noise: float = 0.03
    gpu: dict[int, float] = field(default_factory=dict)
    link: dict[int, float] = field(default_factory=dict)
    host_ns: dict[int, float] = field(default_factory=dict)
    offset_ns: Float64 | None = None
    drift: Float64 | None = None

    def groups(self) -> list[tuple[str, list[list[int]]]]:
        """Kind -> groups: of each host, and across them."""
        all_ranks = np.arange(self.ranks).reshape(-1, self.per_host)
        return [("host", all_ranks.tolist()), ("across", all_ranks.T.tolist())]

    def local(self, rank: int, true_ns: Float64) -> npt.NDArray[np.int64]:
        """What the rank's clock says."""
        offset = 0.0 if self.offset_ns is None else self.offset_ns[rank]
        drift = 0.0 if self.drift is None else self.drift[rank]
        return np.rint(10_000_000 + offset + (1 + drift) * true_ns).astype(np.int64)

    def run(self) -> list[dict[str, dict[str, Any]]]:
        """Of each rank table -> column -> values; times in ns on the rank's clock."""
        random = np.random.default_rng(self.seed)
        n = self.ranks
        now = np.zeros(n)
        factor = np.array([self.gpu.get(r, 1.0) for r in range(n)])
        delay = np.array([self.host_ns.get(r, 0.0) for r in range(n)])
        base = np.resize(_BASE_NS, self.kernels)
        computing, spans, calls = [], [], []
        for _ in range(self.steps):
            begun = now.copy()
            now = now + 20_000 + delay + random.exponential(2_000, n)
            lasts = base * factor[:, None] * (1 + self.noise * np.abs(random.standard_normal((n, self.kernels))))
            ends = now[:, None] + np.cumsum(lasts + 1_500, axis=1)
            computing.append((ends - lasts, ends))
            now = ends[:, -1] + 2_000
            of_step = []
            for _, groups in self.groups():
                arrived, now = now.copy(), now.copy()
                for group in groups:
                    wire = 300_000 * max(self.link.get(r, 1.0) for r in group) * (1 + 0.01 * random.random())
                    # Ends are a microsecond or two apart, now and then much more.
                    late = random.exponential(700, len(group)) + (random.random(len(group)) < 0.02) * 40_000
                    now[group] = arrived[group].max() + wire + late
                of_step.append((arrived, now.copy()))
                now = now + 2_000
            calls.append(of_step)
            spans.append((begun, now.copy()))
        return [self._of_rank(r, computing, spans, calls) for r in range(n)]

    def _of_rank(self, r: int, computing: Any, spans: Any, calls: Any) -> dict[str, dict[str, Any]]:
        s, each = self.steps, self.kernels
        start = np.concatenate([c[0][r] for c in computing])
        end = np.concatenate([c[1][r] for c in computing])
        call = np.array([[(a[r], b[r]) for a, b in of_step] for of_step in calls])  # (steps, kinds, 2)
        kinds = self.groups()
        n_calls = s * len(kinds)
        in_group = [next(g for g in groups if r in g) for _, groups in kinds]
        step = np.repeat(np.arange(1, s + 1), each)
        call_step = np.repeat(np.arange(1, s + 1), len(kinds))
        instance = np.arange(1, n_calls + 1)
        call_start, call_end = self.local(r, call[:, :, 0].ravel()), self.local(r, call[:, :, 1].ravel())
        numbers = np.resize(np.arange(len(NAMES)), each)
        return {
            "kernels": {
                "start": np.concatenate([self.local(r, start), call_start]),
                "end": np.concatenate([self.local(r, end), call_end]),
                "name": [NAMES[i] for i in numbers] * s + [_NCCL] * n_calls,
                "step": np.concatenate([step, call_step]),
                "correlation_id": np.arange(1, s * each + n_calls + 1),
                "collective": np.concatenate([np.zeros(s * each, np.int64), instance]),
                "stream": np.concatenate([np.full(s * each, 7), np.full(n_calls, 20)]),
            },
            "collectives": {
                "start": call_start - 5_000,
                "end": call_start - 4_000,
                "name": ["all_reduce"] * n_calls,
                "group": [f"{kind}-{g[0]}" for (kind, _), g in zip(kinds, in_group, strict=True)] * s,
                "ranks": [json.dumps(g) for g in in_group] * s,
                "group_size": [len(g) for g in in_group] * s,
                "sequence": call_step,
                "in_bytes": np.full(n_calls, _BYTES),
                "out_bytes": np.full(n_calls, _BYTES),
                "instance": instance,
                "step": call_step,
            },
            "markers": {
                "start": self.local(r, np.array([b[r] for b, _ in spans])),
                "end": self.local(r, np.array([e[r] for _, e in spans])),
                "name": [f"ProfilerStep#{i}" for i in range(s)],
                "category": ["step"] * s,
                "id": np.arange(s),
            },
        }

    def host(self, rank: int) -> str:
        """Its name."""
        return f"node{rank // self.per_host:03d}"

    def save(self, folder: Path) -> None:
        """The runs of all ranks in the folder of a job."""
        for rank, tables in enumerate(self.run()):
            strings = Strings()
            kernels = tables["kernels"]
            kernels["config"] = np.zeros(len(kernels["start"]), np.int64)
            tables["launch_configs"] = {"grid_x": [1]}
            made = {name: Table.from_columns(name, columns, strings) for name, columns in tables.items()}
            place = {"rank": rank, "world_size": self.ranks}
            Result(made, {"rank": rank, "host": self.host(rank), "distributed": place, "simulated": True}).save_rank(
                folder
            )
