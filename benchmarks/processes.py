"""Processor time and memory of processes, as Linux counts them."""

import os
import resource
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MB = 2**20


@dataclass(frozen=True)
class ProcessGroup:
    """A process and its descendants."""

    pid: int

    def processor_seconds(self) -> float:
        """Return the processor time of the processes, including ended ones that were awaited."""
        fields_by_pid: dict[int, list[str]] = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                fields_by_pid[int(stat.parent.name)] = stat.read_text().rpartition(")")[2].split()
        group = {self.pid}
        while children := {pid for pid, fields in fields_by_pid.items() if int(fields[1]) in group} - group:
            group |= children
        ticks = sum(sum(map(int, fields_by_pid[pid][11:15])) for pid in group if pid in fields_by_pid)
        return ticks / os.sysconf("SC_CLK_TCK")


def processor_seconds_of_this_process() -> float:
    """Return the processor time that this process has used."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_mb_of_this_process() -> float:
    """Return the peak of this process's resident memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
