"""Property test: any flow of records through a small budget. On the stand-in, where what was sent is known to the row."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import cuptiprof
from cuptiprof.sim.sim_device import Op, SimDevice


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 6), st.sampled_from(["kernel", "memcpy", "memset"])), min_size=1, max_size=12),
    st.sampled_from(["latest", "first"]),
)
def test_store(batches: list[tuple[int, str]], keep: str) -> None:
    """Whatever comes, in whatever mix: rows and losses add up, rows are the newest or the oldest of their kind."""
    kinds = {"kernel": Op.KERNEL, "memcpy": Op.MEMCPY, "memset": Op.MEMSET}
    tables = {"kernel": "kernels", "memcpy": "memcpys", "memset": "memsets"}
    sent = dict.fromkeys(kinds, 0)
    SimDevice().reset()  # correlation IDs begin at 1
    with cuptiprof.profile(
        device="sim",
        activities=["kernel", "memcpy", "memset"],
        keep=keep,
        budget="9 MB",
        buffer_size="64 KB",
        buffer_count=64,
    ) as prof:
        device = SimDevice()
        for thousands, kind in batches:
            for _ in range(thousands * 4):
                device.run(device.ops(1000, kinds[kind], name="k", flags=4, bytes=sent[kind]))
                sent[kind] += 1000
                prof._session.counts()
    r = prof.result()
    rows = sum(len(r.tables[tables[k]]) for k in kinds)
    others = len(r.devices) + len(r.contexts)
    lost = r.losses["budget_evicted"] + r.losses["pool_exhausted"]
    # A launch configuration that found no room is one more row left out; there is one configuration here.
    configurations_lost = 1 if sent["kernel"] and not len(r.launch_configs) else 0
    # One device and one context, where anything ran.
    surplus = rows + others + lost - (sum(sent.values()) + (2 if any(sent.values()) else 0))
    assert 0 <= surplus <= configurations_lost
    if r.losses["pool_exhausted"] == 0:
        for kind, table in tables.items():
            ids = np.sort(r.tables[table]["correlation_id"])
            if len(ids) and len(ids) < sent[kind] and keep == "latest":
                last = r.tables[table]["correlation_id"].max()
                assert (np.diff(r.tables[table]["start"][np.argsort(r.tables[table]["correlation_id"])]) >= 0).all()
                assert last <= sum(sent.values())
