"""What is read of the system beside the kernels: every counter of ``system_samples``, its unit and what it is."""

from __future__ import annotations

from dataclasses import dataclass

HOST = -1
"""``system_samples.device`` of what is no GPU's."""


@dataclass(frozen=True)
class SystemCounter:
    """``label`` is what reports call it, ``unit`` that of ``system_samples.value``; ``about``: what is read, where from."""

    name: str
    label: str
    unit: str
    about: str


_NVML = (
    SystemCounter("power", "Power", "W", "of the board, by nvmlDeviceGetPowerUsage; from Ampere on (A100 apart) a mean over one second"),
    SystemCounter("power_limit", "Power Limit", "W", "above which the board is held, by nvmlDeviceGetEnforcedPowerLimit"),
    SystemCounter("sm_clock", "SM Clock", "MHz", "nvmlDeviceGetClockInfo, NVML_CLOCK_SM"),
    SystemCounter("memory_clock", "Memory Clock", "MHz", "nvmlDeviceGetClockInfo, NVML_CLOCK_MEM"),
    SystemCounter("temperature", "Temperature", "C", "of the GPU's core, by nvmlDeviceGetTemperature"),
    SystemCounter("fan", "Fan", "%", "speed that the fan is told to have, by nvmlDeviceGetFanSpeed; boards without one have none"),
    SystemCounter("gpu_utilization", "GPU Utilization", "%", "of the driver's last period in which any kernel ran"),
    SystemCounter("memory_utilization", "Memory Utilization", "%", "of the driver's last period in which GPU memory was read or written"),
    SystemCounter("memory_used", "Memory Used", "bytes", "of the GPU's memory, by all processes"),
    SystemCounter("pcie_sent", "PCIe Sent", "bytes/s", "by the GPU, over 20 ms: nvmlDeviceGetPcieThroughput, which takes as long"),
    SystemCounter("pcie_received", "PCIe Received", "bytes/s", "by the GPU, over 20 ms: nvmlDeviceGetPcieThroughput, which takes as long"),
    SystemCounter("pcie_generation", "PCIe Generation", "", "of the link as it is now: nvmlDeviceGetCurrPcieLinkGeneration; lower while idle"),
    SystemCounter("pcie_width", "PCIe Width", "lanes", "of the link as it is now: nvmlDeviceGetCurrPcieLinkWidth"),
    SystemCounter("nvlink_sent", "NVLink Sent", "bytes/s", "payload over all links since the reading before"),
    SystemCounter("nvlink_received", "NVLink Received", "bytes/s", "payload over all links since the reading before"),
    SystemCounter("performance_state", "Performance State", "P", "0 (P0, the fastest) to 15"),
    SystemCounter("clock_reasons", "Clock Reasons", "bits", "what holds the clocks: nvmlClocksEventReason bits"),
    SystemCounter("power_cap_time", "Power Cap", "%", "of the time since the reading before that it held the clocks: NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP"),
    SystemCounter("sync_boost_time", "Sync Boost", "%", "the same by NVML_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST"),
    SystemCounter("software_thermal_time", "Software Thermal Slowdown", "%", "the same by NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN"),
    SystemCounter("hardware_thermal_time", "Hardware Thermal Slowdown", "%", "the same by NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN"),
    SystemCounter("power_brake_time", "Power Brake", "%", "the same by NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN"),
    SystemCounter("ecc_corrected", "ECC Corrected", "errors", "of memory, since the driver was loaded"),
    SystemCounter("ecc_uncorrected", "ECC Uncorrected", "errors", "of memory, since the driver was loaded"),
    SystemCounter("remapped_rows", "Rows Remapped", "rows", "of memory, ever, by errors corrected or not: nvmlDeviceGetRemappedRows; Ampere and later"),
    SystemCounter("retired_pages", "Pages Retired", "pages", "of memory, ever: nvmlDeviceGetRetiredPages; before Ampere"),
    SystemCounter("xid", "XID", "code", "one row an event that the driver reports as critical: NVIDIA's number of it"),
)  # fmt: skip
_HOST = (
    SystemCounter("process_cpu", "Process CPU", "%", "of one CPU: a process with two busy threads has 200"),
    SystemCounter("machine_cpu", "Machine CPU", "%", "of all CPUs, not idle and not waiting for a disk"),
    SystemCounter("resident", "Resident Memory", "bytes", "of the process"),
    SystemCounter("context_switches", "Context Switches", "1/s", "of all threads of the process, wanted or not"),
    SystemCounter("disk_read", "Disk Read", "bytes/s", "that the process made the disks read"),
    SystemCounter("disk_written", "Disk Written", "bytes/s", "that the process made be written to disks"),
)

XIDS = {
    13: "graphics engine exception", 31: "GPU memory page fault", 32: "invalid or corrupted push buffer", 38: "driver firmware error", 43: "GPU stopped processing",
    45: "preemptive cleanup, due to previous errors", 48: "double bit ECC error", 61: "internal micro-controller breakpoint", 62: "internal micro-controller halt",
    63: "ECC page retirement or row remapping recorded", 64: "ECC page retirement or row remapping failed", 68: "NVDEC0 exception", 69: "graphics engine class error",
    74: "NVLink error", 79: "GPU has fallen off the bus", 92: "high single-bit ECC error rate", 94: "contained ECC error", 95: "uncontained ECC error",
    119: "GSP RPC timeout", 120: "GSP error",
}  # fmt: skip
"""What NVIDIA's "XID Errors" (docs.nvidia.com/deploy/xid-errors) calls the usual ones; 999 is one that NVML does not know."""

SYSTEM_COUNTERS: dict[str, SystemCounter] = {c.name: c for c in (*_NVML, *_HOST)}
"""By name, in the order in which they are shown."""
