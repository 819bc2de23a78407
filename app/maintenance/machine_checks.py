"""Checks of the settings, the disk, the public address, the mail server and the backups."""

import asyncio
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from app.alerts.mail import connect_and_log_in_to_mail_server
from app.alerts.webhook import DeliveryFailed
from app.background.process import run_in_daemon_thread
from app.maintenance.backup import iterate_complete_dumps
from app.maintenance.finding import InstallationFinding, Severity
from app.settings import LOOPBACK_HOSTS, Settings, environment_variable_name
from app.text.postgres_address import parse_postgres_address

SAMPLE_SECRETS = ("change", "example", "secret", "password", "passwort", "sample", "easel", "postgres", "test", "admin")
MIN_DIFFERENT_CHARACTERS = 8  # in a key: 32 random hexadecimal digits nearly always have at least this many
MIN_FREE_BYTES, GOOD_FREE_BYTES = 200 * 10**6, 2 * 10**9
MAX_BACKUP_AGE = timedelta(hours=25)  # a nightly backup may take a while
PUBLIC_URL_TIMEOUT_SECONDS = 5.0
FREE_DISK_REMEDY = "Free some disk space, or move the folder to a larger disk."


async def list_findings_about_machine(settings: Settings, *, now: datetime) -> list[InstallationFinding]:
    """Run all checks that need no database."""
    return [
        *iterate_findings_about_secrets(settings),
        *iterate_findings_about_free_disk(settings),
        finding_about_backups(settings, now=now),
        await finding_about_public_url(settings),
        await finding_about_mail_server(settings),
    ]


def iterate_findings_about_secrets(settings: Settings) -> Iterator[InstallationFinding]:
    """Check that no secret is one that others can guess."""
    password = parse_postgres_address(settings.database_url).password if settings.database_url else None
    secrets = {
        "secret_key": settings.secret_key and settings.secret_key.get_secret_value(),
        "database_url": password,
        "oidc_client_secret": settings.oidc_client_secret.get_secret_value(),
    }
    names = [
        environment_variable_name(field)
        for field, secret in secrets.items()
        if secret and is_sample_secret(secret, is_key=field == "secret_key")
    ]
    if not names:
        yield InstallationFinding("secrets", Severity.OK, "No secret is a sample value.")
    for name in names:
        yield InstallationFinding(
            "secrets",
            Severity.FAULT,
            f"{name} has a secret that others can guess.",
            "Replace it with a random one, such as from `openssl rand -hex 32`.",
        )


def is_sample_secret(secret: str, *, is_key: bool) -> bool:
    """Return whether a secret looks like one of an example; a key of 32 or more characters also if it is monotonous."""
    plain = secret.lower().strip("0123456789!-_.<> ")
    is_known = not plain or plain in SAMPLE_SECRETS or plain.startswith(("change", "example", "your"))
    return is_known or (is_key and len(Counter(secret)) < MIN_DIFFERENT_CHARACTERS)


def iterate_findings_about_free_disk(settings: Settings) -> Iterator[InstallationFinding]:
    """Check the free disk space of the folders that this machine writes to."""
    folders = {"temporary files": Path(tempfile.gettempdir())}
    if settings.database_url is None:
        folders["data"] = settings.data_dir.expanduser()
    if settings.backup_dir is not None:
        folders["backups"] = settings.backup_dir.expanduser()
    for name, folder in folders.items():
        check = f"disk for {name}"
        place = next((path for path in (folder, *folder.parents) if path.exists()), Path("/"))
        free = shutil.disk_usage(place).free
        message = f"{free / 1e9:,.1f} GB free at {place}."
        if free < MIN_FREE_BYTES:
            yield InstallationFinding(check, Severity.FAULT, message, FREE_DISK_REMEDY)
        elif free < GOOD_FREE_BYTES:
            yield InstallationFinding(check, Severity.WARNING, message, FREE_DISK_REMEDY)
        else:
            yield InstallationFinding(check, Severity.OK, message)


def finding_about_backups(settings: Settings, *, now: datetime) -> InstallationFinding:
    """Check that there is a complete backup of the last day."""
    remedy = "Let cron or a systemd timer run `easel backup` each night."
    folder = settings.backup_dir
    if folder is None:
        return InstallationFinding("backups", Severity.WARNING, "EASEL_BACKUP_DIR is not set.", f"Set it. {remedy}")
    dumps: list[Path] = []
    with suppress(OSError):
        dumps = sorted(iterate_complete_dumps(folder.expanduser()))
    if not dumps:
        return InstallationFinding("backups", Severity.WARNING, f"{folder} has no complete backup.", remedy)
    begun_at = datetime.strptime(dumps[-1].stem, "easel-%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    message = f"The newest backup is from {begun_at:%Y-%m-%d %H:%M} UTC."
    if now - begun_at > MAX_BACKUP_AGE:
        return InstallationFinding(
            "backups", Severity.WARNING, message, f"Find out why there is no newer one. {remedy}"
        )
    return InstallationFinding("backups", Severity.OK, message)


async def finding_about_public_url(settings: Settings) -> InstallationFinding:
    """Check that Easel answers at its public address."""
    url = settings.public_url
    if url is None:
        if settings.host in LOOPBACK_HOSTS:
            return InstallationFinding(
                "public address", Severity.OK, "EASEL_PUBLIC_URL is not set: links lead to this machine."
            )
        return InstallationFinding(
            "public address",
            Severity.WARNING,
            "EASEL_PUBLIC_URL is not set, but Easel listens on a network.",
            "Set it to the https:// address that annotators use.",
        )
    try:
        async with httpx.AsyncClient(timeout=PUBLIC_URL_TIMEOUT_SECONDS, trust_env=False) as client:
            reply = await client.get(f"{url}/health")
    except httpx.HTTPError as problem:
        return InstallationFinding(
            "public address",
            Severity.FAULT,
            f"{url}/health does not answer ({type(problem).__name__}: {' '.join(str(problem).split())}).",
            "Start the server, then check the name, the proxy and its certificate; correct EASEL_PUBLIC_URL if it is "
            "wrong.",
        )
    if reply.status_code != 200 or b'"status"' not in reply.content:
        return InstallationFinding(
            "public address",
            Severity.FAULT,
            f"{url}/health answers {reply.status_code}, but the reply is not from Easel.",
            "Correct EASEL_PUBLIC_URL, or the path that the proxy passes on.",
        )
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in LOOPBACK_HOSTS:
        return InstallationFinding(
            "public address",
            Severity.WARNING,
            f"{url} is not encrypted.",
            "Put a proxy with TLS in front of Easel: passwords and answers cross the network unencrypted.",
        )
    return InstallationFinding("public address", Severity.OK, f"Easel answers at {url}.")


async def finding_about_mail_server(settings: Settings) -> InstallationFinding:
    """Check that the mail server takes a connection and the login; no mail is sent."""
    if settings.smtp_url is None:
        return InstallationFinding("mail", Severity.OK, "EASEL_SMTP_URL is not set: Easel sends no mail.")
    url = settings.smtp_url.get_secret_value()
    place = urlsplit(url).hostname

    def log_in_and_out() -> None:
        with closing(connect_and_log_in_to_mail_server(url)) as client:
            client.noop()

    try:
        await asyncio.wait_for(run_in_daemon_thread(log_in_and_out, "doctor"), PUBLIC_URL_TIMEOUT_SECONDS)
    except (OSError, TimeoutError, DeliveryFailed) as problem:  # smtplib's own errors are OSErrors
        return InstallationFinding(
            "mail",
            Severity.FAULT,
            f"The mail server {place} cannot be used ({type(problem).__name__}).",
            "Correct EASEL_SMTP_URL: scheme, host, port, name and password. Alerts wait until then.",
        )
    return InstallationFinding("mail", Severity.OK, f"The mail server {place} accepts Easel.")
