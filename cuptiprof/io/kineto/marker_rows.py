"""What Kineto says of an annotation's work on the GPU (``gpu_user_annotation``): rows of ``markers``. Of a run of cuptiprof's own the same
is worked out from regions and kernels."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from cuptiprof.data.tables import Strings
from cuptiprof.io.kineto.event_rows import EventRows

ON_GPU = "gpu_user_annotation"


def gpu_annotations(rows: EventRows, strings: Strings) -> dict[str, Any]:
    """Columns of ``markers``: from the first to the last work of the annotation in a stream, which the metadata names."""
    kept = rows.kept(
        {
            "name": rows.text("name"),
            "id": rows.low32("External id"),
            "device": rows.count("device", instead="pid"),
            "stream": rows.count("stream", instead="tid"),
        }
    )
    device, stream = kept.pop("device"), kept.pop("stream")
    places, which = np.unique(np.column_stack([device, stream]), axis=0, return_inverse=True)
    texts = [strings.code(json.dumps({"device": d, "stream": s})) for d, s in places.tolist()]
    category = np.full(len(rows), strings.code(ON_GPU) if len(rows) else 0)
    metadata = np.array(texts, np.int64)[which.reshape(-1)]
    return {**kept, "start": rows.start, "end": rows.end, "category": category, "metadata": metadata}
