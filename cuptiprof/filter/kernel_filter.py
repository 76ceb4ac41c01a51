"""Kernel filters: one compiled object that says what to keep, what to count and what to show.

Patterns are globs (the rules of ``fnmatch.fnmatchcase``) or, after ``regex:``, POSIX extended regular
expressions that are searched for. nvprof's ``--kernels`` and ncu's options compile into the same object.
``docs/filters.md`` has the whole story.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from cuptiprof import _core
from cuptiprof.data.python_stacks import PythonStacks
from cuptiprof.errors import FilterError
from cuptiprof.filter.checks import Dims, Ids, Texts, dims, ids, integer, texts
from cuptiprof.filter.launch import Launch

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from cuptiprof.data.tables import Table


class KernelFilter:
    """Selects kernel launches. Immutable; equal arguments make equal filters.

    Order of the tests: device, skip_before_match, names, regions, NVTX ranges and operators, context, stream, thread, step,
    grid, block, launch IDs, skip, every, count.

    Args:
        kernels: pattern or patterns of which one must match the name. A glob is compared with the function
            name ("reduce_kernel"); one that contains "::" with the qualified name
            ("at::native::reduce_kernel"), and one that contains "(", "<" or a space with the demangled name.
            A ``regex:`` that contains "::", "<" or a space searches the demangled name, any other the
            function name.
        exclude: patterns of which none may match the name.
        base: "function" (as above), or "demangled" or "mangled" to compare every pattern with that form.
        regions: patterns; the launch must be inside a matching region, at any depth. Without "/" a glob is
            compared with region names, with "/" with whole paths (``fwd/*``).
        exclude_regions: patterns of regions the launch must not be inside of; wins over ``regions``.
        operators: patterns of PyTorch's operators, as ``regions``: the launch must be inside a matching one ("aten::convolution",
            "MmBackward0", ``aten::linear/*``). A session observes operators for it.
        lines: the launch must come from there, or from what was called from there: a file ("train.py"), a line of it
            ("train.py:42") or a function ("Model.forward"), by the whole name or its end, with wildcards. A session keeps whole
            Python stacks for it.
        modules: the launch must be made in there, or in what was called from there: a module of PyTorch by its path
            ("layers.3.attn", "Net.head"), the end of it, or a glob of either. A session knows modules for it; with counters the launches that
            first show a module that was made meanwhile are not counted.
        devices, streams, contexts, threads: one ID or several (device ordinals, CUPTI stream and context
            IDs, system thread IDs).
        steps: training steps (``step()`` ends one), from 0: one number or several, ``range(10, 13)``.
        grid, block: exact size, (x,), (x, y) or (x, y, z).
        skip: matching launches to pass over first.
        count: how many launches to select at most.
        every: of the launches after ``skip``, the first and then every n-th.
        skip_before_match: launches of any kind to pass over first.
        mode: "global", "per-gpu" (skip, every and count by device) or "per-launch-config" (all counting by grid,
            block and shared memory).

    Raises:
        FilterError: a pattern or number that cannot be used, with its position and what to write instead.
    """

    __slots__ = ("_fields", "_native")
    _fields: dict[str, Any]
    _native: _core.KernelFilter

    def __init__(
        self,
        kernels: Texts = None,
        *,
        exclude: Texts = None,
        base: str = "function",
        regions: Texts = None,
        exclude_regions: Texts = None,
        operators: Texts = None,
        lines: Texts = None,
        modules: Texts = None,
        devices: Ids = None,
        streams: Ids = None,
        contexts: Ids = None,
        threads: Ids = None,
        steps: Ids = None,
        grid: Dims | None = None,
        block: Dims | None = None,
        skip: int = 0,
        count: int | None = None,
        every: int = 1,
        skip_before_match: int = 0,
        mode: str = "global",
    ) -> None:
        self._compile(
            kernels=texts("kernels", kernels),
            exclude=texts("exclude", exclude),
            base=base,
            regions=texts("regions", regions),
            exclude_regions=texts("exclude_regions", exclude_regions),
            operators=texts("operators", operators),
            lines=texts("lines", lines),
            modules=texts("modules", modules),
            devices=ids("devices", devices),
            streams=ids("streams", streams),
            contexts=ids("contexts", contexts),
            threads=ids("threads", threads),
            steps=ids("steps", steps),
            grid=None if grid is None else dims("grid", grid),
            block=None if block is None else dims("block", block),
            skip=integer("skip", skip),
            count=None if count is None else integer("count", count),
            every=integer("every", every),
            skip_before_match=integer("skip_before_match", skip_before_match),
            mode=mode,
        )

    def _compile(self, **given: Any) -> None:
        fields: dict[str, Any] = {
            "base": "function",
            "grid": None,
            "block": None,
            "skip": 0,
            "count": None,
            "every": 1,
            "skip_before_match": 0,
            "mode": "global",
        }
        for key in _LISTS:
            fields[key] = []
        fields.update(given)
        for key in ("base", "mode"):
            if not isinstance(fields[key], str):
                raise FilterError(f"{key}={fields[key]!r} is not text", hint="See the documentation of KernelFilter.")
        self._native = _core.KernelFilter(fields)
        self._fields = fields

    @classmethod
    def from_nvprof(
        cls,
        kernels: str | Iterable[str],
        *,
        lines: Texts = None,
        modules: Texts = None,
        devices: Ids = None,
        skip: int = 0,
        count: int | None = None,
    ) -> KernelFilter:
        """The filter of nvprof's ``--kernels``.

        The text is a regular expression on the demangled name, or the four fields
        "context:stream:name:invocation" ("::gemm:1": the first run of each kernel whose name contains gemm).
        Several strings select what any of them selects. ``lines``, ``modules``, ``devices``, ``skip`` and ``count`` are those of
        KernelFilter.

        Raises:
            FilterError: the text cannot be understood.
        """
        return cls._from(
            nvprof_kernels=texts("kernels", kernels),
            lines=texts("lines", lines),
            modules=texts("modules", modules),
            devices=ids("devices", devices),
            skip=integer("skip", skip),
            count=None if count is None else integer("count", count),
        )

    @classmethod
    def from_ncu(
        cls,
        *,
        kernel_name: Texts = None,
        kernel_id: Texts = None,
        base: str = "function",
        nvtx_include: Texts = None,
        nvtx_exclude: Texts = None,
        lines: Texts = None,
        modules: Texts = None,
        skip: int = 0,
        count: int | None = None,
        skip_before_match: int = 0,
        devices: Ids = None,
        mode: str = "global",
    ) -> KernelFilter:
        """The filter of Nsight Compute's command line; several values of one option are alternatives.

        Args:
            kernel_name: ``-k/--kernel-name``: the exact name, or ``regex:`` and an expression to search for.
            kernel_id: ``--kernel-id``: "context:stream:[regex:]name:invocation".
            base: ``--kernel-name-base``: "function", "demangled" or "mangled".
            nvtx_include: ``--nvtx-include`` expressions; regions count as push/pop ranges of the default
                domain.
            nvtx_exclude: ``--nvtx-exclude`` expressions.
            lines, modules: as in KernelFilter; ncu has nothing like them.
            skip: ``-s/--launch-skip``, matching launches.
            count: ``-c/--launch-count``, matching launches.
            skip_before_match: ``--launch-skip-before-match``, launches of any kind.
            devices: ``--devices``.
            mode: ``--filter-mode``: "global", "per-gpu" or "per-launch-config".

        Raises:
            FilterError: an option that cannot be understood.
        """
        return cls._from(
            kernel_names=texts("kernel_name", kernel_name),
            kernel_ids=texts("kernel_id", kernel_id),
            base=base,
            nvtx_include=texts("nvtx_include", nvtx_include),
            nvtx_exclude=texts("nvtx_exclude", nvtx_exclude),
            lines=texts("lines", lines),
            modules=texts("modules", modules),
            skip=integer("skip", skip),
            count=None if count is None else integer("count", count),
            skip_before_match=integer("skip_before_match", skip_before_match),
            devices=ids("devices", devices),
            mode=mode,
        )

    @classmethod
    def _from(cls, **fields: Any) -> KernelFilter:
        self = cls.__new__(cls)
        self._compile(**fields)
        return self

    def select(self, launches: Iterable[Launch]) -> list[int]:
        """Indices of the selected launches, which are given in launch order. Needs no device."""
        return self._native.select(launches)

    def matches_name(self, name: str) -> bool:
        """Whether a kernel of this (mangled or demangled) name can be selected at all."""
        return self._native.matches_name(name)

    def mask(self, kernels: Table, configs: Table | None = None) -> npt.NDArray[np.bool_]:
        """The selected rows of a kernels table as a bool array, one entry a row.

        Rows are judged in ascending order of correlation ID. ``configs`` is the launch_configs table of the
        same run; by default the one that the kernels table refers to.

        Raises:
            FilterError: more distinct kernels or configurations than a filter keeps counters for, or a
                filter that needs ``configs``.
        """
        sizes = None
        configs = configs if configs is not None else kernels.configs
        if configs is not None:
            import numpy as np

            columns = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
            shared = configs["static_shared_memory"].astype(np.int64) + configs["dynamic_shared_memory"]
            sizes = np.stack([*(configs[c].astype(np.int64) for c in columns), shared], axis=1)
        elif self._needs_configs():
            raise FilterError("this filter needs launch configurations", hint="Pass result.launch_configs as configs.")
        selected, refused = _core.select_rows(
            self._native,
            len(kernels),
            names=kernels.strings,
            name_codes=kernels.codes("name"),
            device=kernels["device"],
            context=kernels["context"],
            stream=kernels["stream"],
            thread=kernels["thread"],
            step=kernels["step"],
            configs=sizes,
            config=None if sizes is None else kernels["config"],
            ranges=kernels.strings,
            region_codes=kernels.codes("region"),
            nvtx_codes=kernels.codes("nvtx"),
            start_end_codes=kernels.codes("nvtx_start_end"),
            operator_codes=kernels.codes("operator"),
            order=kernels["correlation_id"],
            in_lines=self._in_lines(kernels) if self.needs_lines or self.needs_modules else None,
        )
        if refused:
            raise FilterError(
                f"{refused} launches have more distinct names or configurations than a filter counts (2^18)",
                hint="Select fewer kernels by name first, or leave out the invocation or mode.",
            )
        return selected

    def _in_lines(self, kernels: Table) -> npt.NDArray[np.uint8]:
        """By row, whether the filter's lines and modules select its stack and its module."""
        import numpy as np

        used, which = np.unique(kernels.codes("module"), return_inverse=True)
        in_modules = np.array([self._native.matches_module(kernels.strings[int(c)]) for c in used], np.uint8)[which]
        if not self.needs_lines:
            return in_modules
        if kernels.stacks is None:
            raise FilterError("this filter needs the stacks of the run", hint="Use the kernels table of a result.")
        stacks = PythonStacks(kernels.stacks)
        used, which = np.unique(kernels.codes("stack"), return_inverse=True)
        verdicts = [self._native.matches_lines(stacks.places(int(stack))) for stack in used]
        return np.array(verdicts, np.uint8)[which] & in_modules

    def _needs_configs(self) -> bool:
        f = self._fields
        return bool(
            f["grid"] or f["block"] or f["mode"] == "per-launch-config" or (f["kernel_ids"] and self.is_stateful)
        )

    @property
    def native(self) -> _core.KernelFilter:
        """The compiled object, for the collector."""
        return self._native

    @property
    def name_patterns(self) -> list[str]:
        """The patterns that a name must match one of, as written; for "no kernel matched ..."."""
        return self._native.name_patterns()

    @property
    def selects_all(self) -> bool:
        """True when the filter restricts nothing."""
        return self._native.selects_all

    @property
    def needs_regions(self) -> bool:
        """True when the filter looks at regions, NVTX ranges or operators."""
        return self._native.needs_regions

    @property
    def needs_lines(self) -> bool:
        """True when the filter looks at lines of Python."""
        return self._native.needs_lines

    @property
    def needs_operators(self) -> bool:
        """True when the filter looks at operators of PyTorch."""
        return self._native.needs_operators

    @property
    def needs_modules(self) -> bool:
        """True when the filter looks at PyTorch's modules."""
        return self._native.needs_modules

    @property
    def is_applied_late(self) -> bool:
        """True when a session can tell which launches are selected only when it ends: they are counted, or it is only then sure
        of their modules."""
        return self.is_stateful or self.needs_modules

    @property
    def names_nvtx(self) -> bool:
        """True when the filter has expressions about NVTX ranges."""
        return bool(self._fields["nvtx_include"] or self._fields["nvtx_exclude"])

    @property
    def is_stateful(self) -> bool:
        """True when the verdict on a launch depends on the launches before it."""
        return self._native.is_stateful

    def describe(self) -> str:
        """The filter in one line, e.g. ``kernels '*gemm*', in region 'fwd', count 5``."""
        return self._native.describe()

    def __repr__(self) -> str:
        return f"<KernelFilter {self.describe()}>"

    def __eq__(self, other: object) -> bool:
        return self._fields == other._fields if isinstance(other, KernelFilter) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.describe())


_LISTS = (
    "kernels",
    "exclude",
    "kernel_names",
    "nvprof_kernels",
    "kernel_ids",
    "regions",
    "exclude_regions",
    "nvtx_include",
    "nvtx_exclude",
    "operators",
    "lines",
    "modules",
    "devices",
    "contexts",
    "streams",
    "threads",
    "steps",
)
