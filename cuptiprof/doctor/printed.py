"""A report as text."""

from __future__ import annotations

from collections.abc import Iterator

from cuptiprof.doctor.diagnosis import Diagnosis

_MARKS = {True: "yes", False: "no", None: "?"}


def diagnosis_text(report: Diagnosis) -> str:
    """Plain text, no trailing newline. Paths and names of others cannot bring control characters into a terminal."""
    return "\n".join("".join(c if c.isprintable() else ascii(c)[1:-1] for c in line) for line in _lines(report))


def _lines(report: Diagnosis) -> Iterator[str]:
    if report.simulated:
        yield "cuptiprof doctor: simulated device (no GPU is examined)"
    else:
        yield "cuptiprof doctor"
        driver = report.driver
        if driver["version"]:
            module = f", kernel module {driver['kernel_module']}" if driver["kernel_module"] else ""
            yield f"driver     CUDA {driver['version']} ({driver['how']} of {driver['path']}{module})"
        else:
            yield "driver     none" + (f" (kernel module {driver['kernel_module']})" if driver["kernel_module"] else "")
        for gpu in report.gpus:
            parts = [f"compute capability {gpu['compute_capability']}"] if "compute_capability" in gpu else []
            parts += [f"{gpu['multiprocessors']} SMs"] if "multiprocessors" in gpu else []
            parts += [f"{gpu['memory_bytes'] / 2**30:.1f} GiB"] if "memory_bytes" in gpu else []
            parts += [gpu["compute_mode"]] if gpu.get("compute_mode", "default") != "default" else []
            yield f"GPU {gpu['ordinal']:<6} {gpu['name']} ({', '.join(parts)})"
        if not report.gpus:
            yield "GPUs       none"
    yield f"libcupti   {_libcupti(report)}"
    for other in report.libcupti["others"]:
        yield f"           also there: {other['path']} ({other['how']}, CUDA {other['version'] or 'unknown'})"
    if not report.simulated:
        found = {k: v for k, v in report.nvperf.items() if v}
        missing = [k for k in report.nvperf if k not in found]
        text = "host and target beside libcupti" if not missing else f"{' and '.join(missing)} not beside libcupti"
        yield f"nvperf     {text} (only hardware counters need it)"
        admin = {True: "administrators only", False: "all users", None: "not told by the driver"}
        yield (
            f"privileges hardware counters: {admin[report.privileges['admin_only']]}; "
            f"CAP_SYS_ADMIN: {_MARKS[report.privileges['cap_sys_admin']]}"
        )
    if "kernels" in report.trial:
        counts = ", ".join(f"{report.trial[t]} {t}" for t in ("kernels", "memcpys", "memsets", "api_calls"))
        yield f"trial      {counts} recorded"
    yield ""
    width = max(len(f.name) for f in report.features)
    for feature in report.features:
        yield f"{_MARKS[feature.works]:<4} {feature.name:<{width}}  {feature.why}".rstrip()
        if feature.hint:
            yield f"     {'':<{width}}  -> {feature.hint}"
    if report.findings:
        yield ""
    for finding in report.findings:
        yield f"{finding.level}: {finding.what}"
        if finding.hint:
            yield f"  -> {finding.hint}"
    yield ""
    device = "the simulated device" if report.simulated else "this machine"
    yield f"Tracing works on {device}." if report.can_trace else f"Tracing does not work on {device}."


def _libcupti(report: Diagnosis) -> str:
    library = report.libcupti
    if not library["path"]:
        return "none"
    version = f"CUDA {library['cuda']} (by its {library['version_from']})" if library["cuda"] else "version unknown"
    if library["version"]:
        version = f"CUDA {library['cuda'] or '?'} (cuptiGetVersion {library['version']})"
    return f"{library['path']}: {library['how']}, {version}"
