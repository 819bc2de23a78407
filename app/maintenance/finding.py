"""Findings of `easel doctor`: the result of one check, and what to do about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum


class Severity(IntEnum):
    """How bad a finding is. The worst one is the exit code of `easel doctor`."""

    OK = 0
    WARNING = 1
    FAULT = 2


@dataclass(frozen=True)
class InstallationFinding:
    """Result of a check.

    Args:
        check: Name of the check, which stays the same from release to release.
        severity: OK; WARNING if Easel works but something may go wrong; FAULT if it does not work, or may lose answers.
        message: A sentence about the present state, without secrets.
        remedy: What to do about it; empty if all is well.

    """

    check: str
    severity: Severity
    message: str
    remedy: str = ""


def worst_severity(findings: Sequence[InstallationFinding]) -> Severity:
    return max((finding.severity for finding in findings), default=Severity.OK)
