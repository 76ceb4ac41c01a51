"""``device=``: the real GPU, the simulated one, or a recorded trace played on the simulated one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cuptiprof import _core
from cuptiprof.errors import DeviceError
from cuptiprof.text.nearest import did_you_mean

if TYPE_CHECKING:
    from cuptiprof.sim.pytorch.install import TorchOnDevice
    from cuptiprof.sim.replay import TracePlayer
    from cuptiprof.sim.sim_clocks import SimClocks
    from cuptiprof.sim.sim_device import Opened, Setup, SimDevice
    from cuptiprof.sim.sim_nvml import SimNvml


class Device:
    """What a session runs on. A session calls ``open``, ``started``, ``stopping``, in this order, each time it runs.

    Attributes:
        spec: the text the user gave.
        library: the loaded libcupti.
        simulated: on the stand-in.
        chip: of a simulated device: "H100".
        plays_every_call: a session on it leaves no API call out.
    """

    simulated = False
    chip = ""
    plays_every_call = False

    def __init__(self, spec: str, library: Any) -> None:
        self.spec = spec
        self.library = library

    @property
    def compiled_calls(self) -> int:
        """Calls of functions of torch.compile, which a simulated device runs as they were written."""
        return 0

    def open(self) -> contextlib.AbstractContextManager[object]:
        """What a session holds from before its start until after its stop, and then leaves."""
        return contextlib.nullcontext()

    def started(self) -> None:
        """Called after the session has started."""

    def stopping(self) -> None:
        """Called before the session stops."""

    def nvml(self) -> Any:
        """The module ``pynvml``, or what answers as it does.

        Raises:
            DeviceError: there is none.
        """
        from cuptiprof.device.nvml import load_nvml

        return load_nvml()

    def metadata(self) -> dict[str, Any]:
        """What run.json says about the device."""
        return {
            "device": self.spec,
            "simulated": self.simulated,
            "simulated_chip": self.chip,
            "cupti_version": self.library.version,
            "driver_version": self.library.driver_version,
            "libcupti_path": os.path.basename(self.library.path),
            "libcupti_found": self.library.found_by,
        }


class CudaDevice(Device):
    """The GPUs of this machine."""

    def __init__(self) -> None:
        from cuptiprof.device.locate import driver_present, find_cupti

        if not driver_present():
            raise DeviceError(
                "no NVIDIA driver here (libcuda.so.1 cannot be loaded)",
                hint='to try cuptiprof without a GPU use device="sim" (or --device sim); `cuptiprof doctor` says more',
            )
        found = find_cupti()
        super().__init__("cuda", _core.load_cupti(found.path, found.how))

    def metadata(self) -> dict[str, Any]:
        """With the GPUs that the process sees, by ordinal, once it has used one: their names and UUIDs."""
        from cuptiprof.device.driver import Driver, DriverError

        gpus: list[dict[str, Any]] = []
        with contextlib.suppress(OSError, DriverError):  # cuInit is the program's to call
            gpus = [{k: gpu[k] for k in ("ordinal", "name", "uuid") if k in gpu} for gpu in Driver().gpus()]
        return super().metadata() | ({"gpus": gpus} if gpus else {})


class SimulatedDevice(Device):
    """The stand-in; PyTorch's operators run on it as well as any script's own simulated calls.

    A process has one, which everybody shares who names the same; it is made anew only for another chip, and only while
    nobody uses it.
    """

    simulated = True

    def __init__(self, chip: str = "H100", spec: str = "sim", *, virtual_clock: bool = False, devices: int = 1) -> None:
        from cuptiprof.data.chips import BOARDS, board_called
        from cuptiprof.sim.sim_clocks import SimClocks
        from cuptiprof.sim.sim_device import Setup, SimDevice, library_path
        from cuptiprof.sim.sim_nvml import SimNvml

        board = board_called(chip)
        if board is None:
            raise DeviceError(
                f"unknown simulated chip {chip!r}{did_you_mean(chip, BOARDS)}", hint=f"one of: {', '.join(BOARDS)}"
            )
        self.chip = chip = board
        self.unmodelled: dict[str, int] = {}  # PyTorch operators that the model took as element-wise, with their calls
        self.sim: SimDevice = SimDevice()
        self.setup: Setup = Setup(chip, virtual_clock=virtual_clock, devices=devices)
        self.sim.open(self.setup).close()  # the library says of itself what the machine is
        super().__init__(spec, _core.load_cupti(str(library_path()), "simulated device", True))
        self.virtual_clock = virtual_clock
        self.clocks: SimClocks = SimClocks(self.sim)
        self.system: SimNvml = SimNvml(self.clocks)
        self._users = 0  # sessions and holders that want PyTorch on the device
        self._torch: TorchOnDevice | None = None

    def open(self) -> Opened:
        return self.sim.open(self.setup)

    def nvml(self) -> SimNvml:
        return self.system

    def started(self) -> None:
        self._put_torch_on()

    def stopping(self) -> None:
        self._take_torch_off()

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """PyTorch's operators run on the simulated device inside, in sessions and between them."""
        self._put_torch_on()
        try:
            yield
        finally:
            self._take_torch_off()

    def _put_torch_on(self) -> None:
        """One more who wants PyTorch's operators here."""
        from cuptiprof.sim.pytorch.install import TorchOnDevice

        self._users += 1
        if self._users == 1:
            self._torch = TorchOnDevice(self.sim, self.chip)
            self._torch.open()

    def _take_torch_off(self) -> None:
        """One less; the last one gives PyTorch its operators back."""
        if self._users == 1 and self._torch is not None:
            self.unmodelled = self._torch.close()  # before it counts: Ctrl-C in the middle, and it is done again
        self._users = max(self._users - 1, 0)

    @property
    def compiled_calls(self) -> int:
        return self._torch.compiled_calls if self._torch is not None else 0

    def metadata(self) -> dict[str, Any]:
        from cuptiprof.sim.pytorch.compiled_calls import UNCOMPILED

        note = {"note": UNCOMPILED} if self.compiled_calls else {}
        return {**super().metadata(), "unmodelled_operators": self.unmodelled, **note}


class ReplayDevice(SimulatedDevice):
    """A recorded trace, played through the stand-in when the session starts."""

    plays_every_call = True

    def __init__(self, path: str, speed: float) -> None:
        from cuptiprof.sim.replay import TracePlayer

        self.player: TracePlayer = TracePlayer(path, speed=speed)
        spec = f"replay:{os.path.basename(path)}"
        super().__init__(self.player.chip, spec, virtual_clock=True, devices=self.player.devices)

    def open(self) -> Opened:
        self.sim.reset(self.setup)  # a recorded run begins at its own time
        return super().open()

    def started(self) -> None:
        self.player.play(self.sim)

    def stopping(self) -> None:
        """The trace has been played: there is nothing to take off."""

    def metadata(self) -> dict[str, Any]:
        return {**Device.metadata(self), "not_replayed": dict(self.player.not_replayed)}


def open_device(spec: str | Device | None, *, speed: float = 0.0, virtual_clock: bool = False) -> Device:
    """The device that `spec` names: "cuda", "sim", "sim:CHIP" or "replay:FILE". None: the environment variable
    CUPTIPROF_DEVICE, else "cuda". A :class:`Device` is taken as it is.

    Args:
        speed: of a replay; 0: as fast as possible.
        virtual_clock: of a simulated device: time moves only with its work.

    Raises:
        DeviceError: there is no such device here.
        ResultError: the trace to replay cannot be read.
    """
    if isinstance(spec, Device):
        return spec
    if spec is not None and not isinstance(spec, str):
        raise DeviceError(f"unknown device {spec!r}", hint='one of: "cuda", "sim", "sim:A100", "replay:trace.json.gz"')
    chosen = spec or os.environ.get("CUPTIPROF_DEVICE") or "cuda"
    kind, _, rest = chosen.partition(":")
    if kind == "cuda" and not rest:
        return CudaDevice()
    if kind == "sim":
        return SimulatedDevice(rest or "H100", chosen, virtual_clock=virtual_clock)
    if kind == "replay" and rest:
        return ReplayDevice(rest, speed)
    raise DeviceError(f"unknown device {chosen!r}", hint='one of: "cuda", "sim", "sim:A100", "replay:trace.json.gz"')
