"""A process group whose collectives are recorded as NCCL's are, and launch a kernel of its names on the simulated device."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

_SOURCE = Path(__file__).with_name("collective_backend.cpp")
_LAUNCH = ctypes.CFUNCTYPE(None)
_FLOAT32 = 6
"""c10::ScalarType"""


def compiled(folder: Path) -> ctypes.CDLL:
    """The source beside this file, with the headers of this torch."""
    home = Path(torch.__file__).parent
    library = folder / "collective_backend.so"
    command = [
        *("g++", "-std=c++20", "-O0", "-w", "-shared", "-fPIC", f"-I{home / 'include'}"),
        *(str(_SOURCE), "-o", str(library), f"-L{home / 'lib'}", "-ltorch_cpu", "-lc10"),
    ]
    subprocess.run(command, check=True, timeout=300)
    return ctypes.CDLL(str(library))


class Backend:
    """Calls of one group.

    Args:
        launch: what a collective launches.
    """

    def __init__(self, library: ctypes.CDLL, launch: Callable[[], None], group: str = "0", size: int = 2) -> None:
        self._library = library
        self._launch = _LAUNCH(launch)
        self.group, self.size, self.sequence = group, size, 0

    def call(self, name: str, elements: int, got: int | None = None, *, rank: int = 0, type_: int = _FLOAT32) -> None:
        """Records one, and launches."""
        self.sequence += 1
        self._library.collective(
            name.encode(), self.group.encode(), b"what it is for", ctypes.c_int64(elements),
            ctypes.c_int64(elements if got is None else got), type_, rank, 4, 2, self.size, ctypes.c_int64(self.sequence),
            True, self._launch,
        )  # fmt: skip

    def other(self) -> None:
        """Records something that no torch of ours makes, and launches."""
        self._library.other_collective(self._launch)


class _Done(dist._Work):  # type: ignore[misc,name-defined]
    def __init__(self, value: Any) -> None:
        super().__init__()
        self._future: Any = torch.futures.Future()
        self._future.set_result(value)

    def wait(self, timeout: Any = None) -> bool:
        return True

    def get_future(self) -> Any:
        return self._future


class Group(dist.ProcessGroup):
    """For DistributedDataParallel, whose C++ calls it; no data is moved."""

    def __init__(self, backend: Backend) -> None:
        super().__init__(0, backend.size)
        self._backend = backend

    def allreduce(self, tensors: Sequence[torch.Tensor], options: Any) -> Any:
        self._backend.call("allreduce", sum(t.numel() for t in tensors))
        return _Done(list(tensors))

    def broadcast(self, tensors: Sequence[torch.Tensor], options: Any) -> Any:
        return _Done(tensors)

    def allgather(self, outputs: Sequence[Sequence[torch.Tensor]], inputs: Sequence[torch.Tensor], options: Any) -> Any:
        for into in outputs:
            for tensor in into:
                tensor.copy_(inputs[0])
        return _Done(outputs)

    def getSize(self) -> int:
        return self._backend.size

    def getBackendName(self) -> str:
        return "records"
