"""PyTorch's operators as a source: finds the program's torch, and tries once where the fields are of what it says of operators.

torch is never imported here: a program that imports it inside a session is followed from there on.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass
from types import ModuleType
from typing import Any

from cuptiprof import _core
from cuptiprof.regions.when_imported import WhenImported
from cuptiprof.session.callers import warn_caller
from cuptiprof.session.torch_events import TakenEvents, TorchEvents
from cuptiprof.session.torch_inputs import InputLayout, UnknownInputs, input_layout

_READ = ((2, 4), (2, 15))
"""The first and the last version whose headers were read; others are tried in a child process first."""
_CHILD_S = 120.0
_NAME = "cuptiprof: trial"
_INSTEAD = (
    "they are what torch.profiler says, joined with launches by thread and time, and no filter can choose by them"
)
_WORD = 8


class OperatorsWarning(UserWarning):
    """The operators of this PyTorch cannot be observed, or not all that is wanted of them."""


@dataclass(frozen=True)
class Layout:
    """Where the fields of a RecordFunction are, in bytes."""

    thread: int
    scope: int
    sequence: int
    forward_thread: int


class UnknownTorch(Exception):
    """Its operators do not say what was expected of them."""


Call = tuple[bytes, bytes, list[int]]


class FollowingOperators:
    """Inside of it the operators of the program's torch are known to sessions that want them; also of one that is imported there.

    Of a torch that cannot be observed what its own profiler says, while :meth:`record` says so.

    Args:
        shapes: whether those of inputs are wanted.
        or_events: whether operators themselves are, so that torch's profiler is asked where they cannot be observed; else only what backends
            tell of collectives beside them.
    """

    no_shapes = ""
    """Of the torch of this process: why the shapes of inputs cannot be read; empty: they can, or it is not known yet."""

    def __init__(self, shapes: bool = False, *, or_events: bool = True) -> None:
        self._shapes = shapes
        self._or_events = or_events
        self._waiting: WhenImported | None = None
        self._events: TorchEvents | None = None
        self._records = False
        self._note = ""

    def __enter__(self) -> FollowingOperators:
        torch = sys.modules.get("torch")
        if torch is not None:
            self._attach(torch)
        else:
            self._waiting = WhenImported("torch", self._attach_at_import)
            self._waiting.wait()
        return self

    def __exit__(self, *error: object) -> None:
        if self._waiting is not None:
            self._waiting.remove()
        if self._events is not None:
            self._events.close()

    @property
    def note(self) -> str:
        """Why there are none, or where else they come from; empty: they are observed, or torch was not imported."""
        more = self._events.note if self._events is not None else ""
        return "; ".join(text for text in (self._note, more) if text)

    def record(self, on: bool) -> None:
        """The session records from here on, or does not."""
        self._records = on
        if self._events is not None:
            self._events.record(on)

    def forget(self) -> None:
        """What was told until now belongs to no cycle."""
        if self._events is not None:
            self._events.forget()

    def take(self) -> TakenEvents | None:
        """What torch's profiler told in this cycle; None: operators are observed."""
        return self._events.take() if self._events is not None else None

    def _attach_at_import(self, torch: ModuleType) -> None:
        # This thread holds the lock of the module: another one would wait for it in an import.
        self._attach(torch, apart=False)

    def _attach(self, torch: ModuleType, apart: bool = True) -> None:
        try:
            if not _core.knows_torch():
                path = library_path(torch)
                layout, inputs = _safely_tried(torch, path, apart)
                known = isinstance(inputs, InputLayout)
                FollowingOperators.no_shapes = "" if known else str(inputs)
                _core.know_torch(path, **asdict(layout), **(asdict(inputs) if isinstance(inputs, InputLayout) else {}))
            if self._shapes and self.no_shapes:
                self._note = f"shapes of the inputs of operators are not known: {self.no_shapes}"
                warn_caller(OperatorsWarning(self._note))
        except Exception as e:  # whatever an unknown torch does, the program goes on without operators
            version = getattr(torch, "__version__", "of unknown version")
            said = f"the operators of PyTorch {version} cannot be observed: {e}"
            if not self._or_events:
                self._note = f"collectives that C++ begins by itself are not known: {said}"
                return
            self._note = f"{said}; {_INSTEAD}"
            warn_caller(OperatorsWarning(self._note))
            self._events = TorchEvents(torch, self._shapes)
            self._events.watch()
            self._events.record(self._records)


def library_path(torch: ModuleType) -> str:
    """Where its libtorch_cpu.so lies.

    Raises:
        UnknownTorch: none is loaded that has what is needed.
    """
    path = os.path.join(os.path.dirname(torch.__file__ or ""), "lib", "libtorch_cpu.so")
    if not _core.finds_torch(path):
        raise UnknownTorch("no libtorch_cpu.so is loaded that has at::addGlobalCallback")
    return path


def _safely_tried(torch: ModuleType, path: str, apart: bool) -> tuple[Layout, InputLayout | Exception]:
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2] if part.isdigit())
    if not _READ[0] <= version <= _READ[1]:
        in_child()
    return tried(torch, path, apart)


def in_child() -> None:
    """The trial in a process of its own, which a torch that is other than we think may bring down.

    Raises:
        UnknownTorch: it did.
    """
    code = (
        "import json, sys; sys.path[:] = json.loads(sys.argv[1]); import torch; from cuptiprof import _core; "
        "from cuptiprof.session.torch_operators import library_path, tried; "
        "tried(torch, library_path(torch)); _core.reads_collectives(library_path(torch))"
    )
    child = subprocess.run(
        [sys.executable or "python3", "-c", code, json.dumps(sys.path)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=_CHILD_S,
        check=False,
    )
    if child.returncode != 0:
        last = child.stderr[-2000:].decode("utf-8", "replace").strip().splitlines()[-1:]
        raise UnknownTorch(f"a trial in a child process ended with {child.returncode}: {' '.join(last)}")


def tried(torch: Any, path: str, apart: bool = True) -> tuple[Layout, InputLayout | Exception]:
    """Runs a few operators and looks what is said of them, and of their inputs: where these are, or why that is not known.

    Args:
        apart: in a thread of their own, where no mode of the program's is on.

    Raises:
        UnknownTorch: not what was expected.
    """
    out: list[tuple[Layout, InputLayout | Exception] | BaseException] = []

    def run() -> None:
        try:
            with torch.inference_mode(False), torch.enable_grad():
                layout = layout_of(*_try_operators(torch, path))
                out.append((layout, _try_inputs(torch, path, layout)))
        except BaseException as e:
            out.append(e)

    if apart:
        thread = threading.Thread(target=run, name="cuptiprof-trial")
        thread.start()
        thread.join()
    else:
        run()
    found = out[0]
    if isinstance(found, UnknownTorch):
        raise found
    if isinstance(found, BaseException):
        raise UnknownTorch(f"{type(found).__name__}: {found}") from found
    return found


def _try_inputs(torch: Any, path: str, layout: Layout) -> InputLayout | Exception:
    try:
        return input_layout(torch, path, layout.sequence + _WORD)
    except UnknownInputs as e:
        return e


def _try_operators(torch: Any, path: str) -> tuple[int, list[Call], int, int]:
    """torch's number of this thread; what was said of each operator; sequence numbers of the nodes of ``mul`` and ``exp``."""
    x = torch.ones(2, 3, dtype=torch.float32, device="cpu", requires_grad=True)
    gradient = torch.ones(2, 3, dtype=torch.float32, device="cpu")
    for _ in range(37):  # so that the numbers are no 0 or 1, of which a RecordFunction is full
        x.neg()
    thread = _core.begin_operator_trial(path)
    try:
        with torch.autograd.profiler.record_function(_NAME):
            product = x * x
            power = product.exp()
        product.grad_fn(gradient)  # the node itself: the engine stays as it is
    finally:
        calls = _core.end_operator_trial(path)
    return thread, calls, product.grad_fn._sequence_nr(), power.grad_fn._sequence_nr()


_FUNCTION, _BACKWARD, _USER = 0, 1, 7
"""at::RecordScope"""


def layout_of(thread: int, calls: list[Call], product: int, power: int) -> Layout:
    """The only places where all of these operators say what is known of them.

    Args:
        thread: torch's number of their thread.
        calls: (name, first bytes of its RecordFunction) of each.
        product, power: sequence numbers of the nodes that ``aten::mul`` and ``aten::exp`` made.

    Raises:
        UnknownTorch: an operator did not come, or there is no such place, or more than one.
    """
    by_name: dict[bytes, bytes] = {}
    for name, first_bytes, _ in calls:
        by_name.setdefault(name, first_bytes)  # the first: backward multiplies, too
    known = {b"aten::mul": (_FUNCTION, product, 0), b"aten::exp": (_FUNCTION, power, 0)}
    known |= {b"MulBackward0": (_BACKWARD, product, thread), _NAME.encode(): (_USER, -1, 0)}
    missing = [name.decode() for name in known if name not in by_name]
    if missing:
        raise UnknownTorch(f"of {', '.join(missing)} nothing was said")
    said = [(by_name[name], scope, sequence, forward) for name, (scope, sequence, forward) in known.items()]

    def word(bytes_: bytes, at: int) -> int:
        return int.from_bytes(bytes_[at : at + _WORD], sys.byteorder, signed=True)

    places = range(0, len(said[0][0]) - _WORD, _WORD)
    threads = [at for at in places if all(word(b, at) == thread and b[at + _WORD] == scope for b, scope, _, _ in said)]
    sequences = [at for at in places if all(word(b, at) == sequence for b, _, sequence, _ in said)]
    forwards = [at for at in places if all(word(b, at) == forward for b, _, _, forward in said)]
    for what, found in (("thread", threads), ("sequence number", sequences), ("forward thread", forwards)):
        if len(found) != 1:
            raise UnknownTorch(f"the {what} is in {len(found)} places of its RecordFunction")
    return Layout(thread=threads[0], scope=threads[0] + _WORD, sequence=sequences[0], forward_thread=forwards[0])
