"""What our own databases have that those of Nsight Systems and nvprof have not.

NVTX domains keep what is no NVTX: a reader of theirs shows ranges, ours makes of them what they were. Facts about the run are pairs of
texts (``META_DATA_CAPTURE``, ``CUPTIPROF_METADATA``).
"""

REGIONS = "cuptiprof"
OPERATORS = "cuptiprof.operators"
STEPS = "cuptiprof.steps"

PRODUCER = "PRODUCER"
SIMULATED = "SIMULATED"
LOST = "LOST_"
"""before the name of a counter of losses"""
