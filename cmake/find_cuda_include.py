"""Print the folder(s) that hold the CUPTI and CUDA headers, ';'-separated, or exit 1.

Order: NVIDIA's wheels (the build requirements), CUDA_HOME, /usr/local/cuda.
"""

import importlib.util
import os
import sys
from pathlib import Path


def candidates() -> list[list[Path]]:
    found = []
    spec = importlib.util.find_spec("nvidia")
    for root in list(spec.submodule_search_locations or []) if spec else []:
        found.append([Path(root) / "cu13" / "include"])
    for home in (os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        if home:
            found.append([Path(home) / "include", Path(home) / "extras" / "CUPTI" / "include"])
    return found


for folders in candidates():
    present = [f for f in folders if f.is_dir()]
    names = {n for f in present for n in os.listdir(f)}
    if {"cupti_activity.h", "cuda.h", "crt"} <= names:
        print(";".join(map(str, present)))
        sys.exit(0)
sys.exit(1)
