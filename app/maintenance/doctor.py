"""All checks of `easel doctor` on the installation that the environment describes."""

import asyncio
import os
from collections.abc import Callable
from datetime import datetime

from app.database.embedded import is_cluster_in_data_directory
from app.database.server_database import open_database_in_any_state_and_yield_url
from app.database.session import DATABASE_ERRORS, create_engine_without_limits
from app.errors import Refusal, StartupProblem
from app.maintenance.database_checks import list_findings_about_database
from app.maintenance.finding import InstallationFinding, Severity
from app.maintenance.machine_checks import list_findings_about_machine
from app.settings import Settings, SettingsProblem, read_settings
from app.text.redaction import describe_exception_without_values
from app.unknown_settings import iterate_unknown_setting_sentences


def list_findings_about_installation(clock: Callable[[], datetime]) -> list[InstallationFinding]:
    """Run all checks. A problem that stops some of them is a finding, too."""
    try:
        settings = read_settings()
    except SettingsProblem as problem:
        return [InstallationFinding("settings", Severity.FAULT, f"{problem}.", "Correct these environment variables.")]
    findings = [InstallationFinding("settings", Severity.OK, "All settings are valid.")]
    findings += [
        InstallationFinding("unknown settings", Severity.WARNING, sentence, "Correct or remove this variable.")
        for sentence in iterate_unknown_setting_sentences(os.environ)
    ]
    findings += asyncio.run(list_findings_about_machine(settings, now=clock()))
    if settings.database_url is None and not is_cluster_in_data_directory(settings.data_dir):
        message = f"There is no database in {settings.data_dir} yet, and DATABASE_URL is not set."
        return [
            *findings,
            InstallationFinding(
                "database",
                Severity.FAULT,
                message,
                "Run `easel serve`, which makes one there, or set DATABASE_URL or EASEL_DATA_DIR.",
            ),
        ]
    try:
        with open_database_in_any_state_and_yield_url(settings) as url:
            findings.append(InstallationFinding("database", Severity.OK, "The database answers."))
            findings += asyncio.run(list_findings_about_database_at_url(url, settings, clock))
    except StartupProblem as problem:
        remedy = "Start PostgreSQL, then check DATABASE_URL, or EASEL_DATA_DIR and its postgresql.log."
        findings.append(InstallationFinding("database", Severity.FAULT, str(problem), remedy))
    return findings


async def list_findings_about_database_at_url(
    url: str, settings: Settings, clock: Callable[[], datetime]
) -> list[InstallationFinding]:
    engine = create_engine_without_limits(url)
    try:
        return await list_findings_about_database(engine, settings, now=clock())
    except (*DATABASE_ERRORS, Refusal) as problem:
        return [
            InstallationFinding(
                "database checks",
                Severity.FAULT,
                f"The checks of the database ended early: {describe_exception_without_values(problem)}.",
                "Repair this, then run `easel doctor` again. The user of DATABASE_URL needs all rights on the tables.",
            )
        ]
    finally:
        await engine.dispose()
