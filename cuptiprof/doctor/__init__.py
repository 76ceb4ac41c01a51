"""``cuptiprof doctor``: what works here, what does not, why, and what to do.

Whatever calls into a driver or a libcupti runs in a child process (``probe.py``): a crash or a hang of theirs is a
finding, not the end of the doctor.
"""

from cuptiprof.doctor.diagnosis import Diagnosis, Feature, Finding
from cuptiprof.doctor.examine import diagnose

__all__ = ["Diagnosis", "Feature", "Finding", "diagnose"]
