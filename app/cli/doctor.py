"""`easel doctor`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from app.cli.run_command import current_utc_time, json_option, print_json
from app.cli.text_table import terminal_width, wrap_text_into_lines
from app.errors import pluralize

if TYPE_CHECKING:
    from app.maintenance.finding import InstallationFinding


@click.command()
@json_option
@click.pass_context
def doctor(context: click.Context, *, as_json: bool) -> None:
    """Check the installation, and say how to repair what is wrong. It changes nothing.

    The exit code is 0 if all is well, 1 after warnings, 2 after faults.
    """
    from app.maintenance.doctor import list_findings_about_installation
    from app.maintenance.finding import worst_severity

    findings = list_findings_about_installation(current_utc_time)
    worst = worst_severity(findings)
    if as_json:
        print_json({"state": worst.name.lower(), "findings": [finding_as_json(finding) for finding in findings]})
    else:
        print_findings(findings)
    context.exit(worst)


def finding_as_json(finding: InstallationFinding) -> dict[str, str]:
    return asdict(finding) | {"severity": finding.severity.name.lower()}


def print_findings(findings: list[InstallationFinding]) -> None:
    """Print each finding, with its remedy below it, and a line with the numbers of faults and warnings."""
    from app.maintenance.finding import Severity

    width = terminal_width()
    indent = " " * (max(len(severity.name) for severity in Severity) + 2)
    for finding in findings:
        state = finding.severity.name.lower().ljust(len(indent))
        lines = wrap_text_into_lines(f"{finding.check}: {finding.message}", width, indent=indent)
        if finding.remedy:
            lines += wrap_text_into_lines(finding.remedy, width, indent=indent)
        click.echo("\n".join([state + lines[0].removeprefix(indent), *lines[1:]]))
    faults = sum(finding.severity is Severity.FAULT for finding in findings)
    warnings = sum(finding.severity is Severity.WARNING for finding in findings)
    click.echo(f"\n{pluralize(faults, 'fault')}, {pluralize(warnings, 'warning')}.")
