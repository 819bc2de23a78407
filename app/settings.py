"""Settings: the only place that reads the environment."""

import re
import shutil
import sys
from collections.abc import Iterable
from contextvars import ContextVar
from ipaddress import ip_network
from os import environ
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app.text.email_address import is_email_address
from app.text.ports import PORT_PATTERN
from app.text.postgres_address import parse_postgres_address

PACKAGE_FOLDER = Path(__file__).resolve().parent
IS_CHECKOUT = (PACKAGE_FOLDER.parent / "pyproject.toml").is_file()
MIN_SECRET_CHARACTERS = 32
# Each may also be in a file that `NAME_FILE` names, as container platforms provide secrets.
SECRET_SETTINGS = ("database_url", "secret_key", "oidc_client_secret", "smtp_url", "metrics_token")
# Variables whose names begin so may hold a token that researchers name instead of entering it.
SERVICE_TOKEN_PREFIX = "EASEL_SERVICE_TOKEN_"  # noqa: S105  (a name, no token)
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
# Strict, because origins are written into the Content-Security-Policy header, where a space or `;` has a meaning.
ORIGIN_PATTERN = rf"https?://(?:[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*|\[[0-9A-Fa-f:]+\])(?::{PORT_PATTERN})?"


class SettingsProblem(ValueError):
    """The environment holds a value Easel cannot work with; the message is one line."""

    code = "settings_problem"


def _to_asyncpg_url(url: str) -> str:
    """Return the same database, spelled for SQLAlchemy on asyncpg."""
    return parse_postgres_address(url).sqlalchemy_url_text()


def _split_at_commas_and_spaces(value: object) -> object:
    return [part for part in value.replace(",", " ").split() if part] if isinstance(value, str) else value


def _validate_web_address(address: str) -> str:
    if not re.fullmatch(rf"{ORIGIN_PATTERN}(/[\w.~-]+)*/?", address):
        raise ValueError(f"'{address}' is not an address such as https://example.org")
    return address.rstrip("/")


def _validate_public_url(address: str) -> str:
    valid = _validate_web_address(address)
    if urlsplit(valid).path:
        raise ValueError(
            f"'{address}' has a path, but Easel needs a host name or a port of its own, such as "
            "https://easel.example.org"
        )
    return valid


def _validate_proxies(proxies: tuple[str, ...]) -> tuple[str, ...]:
    """Return proxies that the server can recognise: it compares addresses, and looks up no names."""
    for proxy in proxies:
        try:
            if proxy != "*":
                ip_network(proxy)
        except ValueError:
            raise ValueError(f"'{proxy}' is not an IP address or network such as 10.0.0.1 or 10.0.0.0/8") from None
    return proxies


def _validate_origins(origins: tuple[str, ...]) -> tuple[str, ...]:
    for origin in origins:
        if not re.fullmatch(ORIGIN_PATTERN, origin):
            raise ValueError(
                f"'{origin}' is not an origin: https://, a host and perhaps a port, such as https://example.org"
            )
    return tuple(origin.lower() for origin in origins)


def _validate_mail_domains(domains: tuple[str, ...]) -> tuple[str, ...]:
    for domain in domains:
        if not is_email_address(f"somebody@{domain}"):
            raise ValueError(f"'{domain}' is not an e-mail domain such as example.org")
    return tuple(domain.lower() for domain in domains)


def _validate_issuer(address: str) -> str:
    """Return the issuer exactly as the provider writes it, a slash at the end included."""
    parts = urlsplit(_validate_web_address(address))
    if parts.scheme != "https" and parts.hostname not in LOOPBACK_HOSTS:
        raise ValueError(
            f"'{address}' needs https://: otherwise someone who can change its replies can log in as anyone"
        )
    return address


def _secure_service_url_without_final_slash_or_raise(address: str) -> str:
    parts = urlsplit(_validate_web_address(address))
    if parts.scheme != "https" and parts.hostname not in LOOPBACK_HOSTS:
        raise ValueError(f"'{address}' needs https://: it gets tokens that can spend money")
    return address.rstrip("/")


def _validate_smtp_url(url: SecretStr) -> SecretStr:
    if not re.fullmatch(rf"smtps?://([^@/\s]+@)?[^@/:\s]+(:{PORT_PATTERN})?/?", url.get_secret_value()):
        # The value may hold a password, so the message does not repeat it.
        raise ValueError("is not an address such as smtp://name:password@mail.example.org:587")
    return url


def _validate_mail_sender(sender: str) -> str:
    """Return a valid sender: an e-mail address, or `Name <address>`."""
    match = re.fullmatch(r"(?:([\w .'-]*)<([^<>]*)>|([^<>]*))", sender.strip())
    if not (match and is_email_address(match[2] or match[3] or "")):
        raise ValueError(f"'{sender}' is not an e-mail address such as easel@example.org or Easel <easel@example.org>")
    return sender.strip()


def _long_key_or_raise(key: SecretStr) -> SecretStr:
    if len(key.get_secret_value()) < MIN_SECRET_CHARACTERS:
        raise ValueError(f"needs {MIN_SECRET_CHARACTERS} characters or more; `openssl rand -hex 32` makes a good one")
    return key


def project_folder() -> Path:
    """Return the folder with `templates`, `static`, `migrations`, `examples` and `docs`.

    In a checkout it is the one above this package, in a wheel a folder inside it: see pyproject.toml.
    """
    return PACKAGE_FOLDER.parent if IS_CHECKOUT else PACKAGE_FOLDER / "project"


def _default_data_dir() -> Path:
    """Return a folder outside the checkout, so that a fresh clone finds the data (XDG base directory specification)."""
    return Path(environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "easel"


OriginsSetting = Annotated[
    tuple[str, ...], NoDecode, BeforeValidator(_split_at_commas_and_spaces), AfterValidator(_validate_origins)
]


class Settings(BaseSettings):
    """Settings of the server, each read from the environment variable `EASEL_` + its name in capitals."""

    model_config = SettingsConfigDict(
        env_prefix="EASEL_", env_ignore_empty=True, validate_by_name=True, frozen=True, extra="forbid"
    )

    database_url: Annotated[str, AfterValidator(_to_asyncpg_url)] | None = Field(
        None,
        validation_alias="DATABASE_URL",
        repr=False,  # it may hold a password
        description="PostgreSQL to use. Without it Easel starts its own, with the data in EASEL_DATA_DIR.",
    )
    data_dir: Path = Field(
        default_factory=_default_data_dir,
        description="Where the embedded PostgreSQL keeps its data. Default: ~/.local/share/easel.",
    )
    backup_dir: Path | None = Field(
        None,
        description="Folder of `easel backup`; `easel doctor` warns if its newest backup is older than a day.",
    )
    host: str = Field("127.0.0.1", description="Address to listen on; 0.0.0.0 means all networks.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 chooses a free port.")
    workers: int = Field(1, ge=1, le=64, description="Number of server processes.")
    pool_size: int = Field(
        8,
        ge=2,
        le=100,
        description=(
            "Database connections of each process, at least 2. Half of them serve annotators. Each process opens 3 "
            "more."
        ),
    )
    campaign_memory_mb: int = Field(
        500,
        ge=10,
        le=1_000_000,
        description=(
            "Memory of each process for the posteriors of campaigns in use, in MB: about 1 MB per campaign and 60 "
            "bytes per item. Beyond it, the campaign used least recently is read again at its next use."
        ),
    )
    public_url: Annotated[str, AfterValidator(_validate_public_url)] | None = Field(
        None,
        description="Public address of Easel if it is behind a proxy, without a path; links start with it.",
    )
    drain_seconds: int = Field(
        0,
        ge=0,
        le=120,
        description=(
            "Seconds for which a server that is told to stop still accepts requests, while /ready says 503: time for a "
            "load balancer to notice."
        ),
    )
    proxies: Annotated[
        tuple[str, ...], NoDecode, BeforeValidator(_split_at_commas_and_spaces), AfterValidator(_validate_proxies)
    ] = Field(
        ("127.0.0.1",),
        description="IP addresses or networks of proxies whose X-Forwarded-For and X-Forwarded-Proto headers are "
        "trusted, comma-separated.",
    )
    secret_key: Annotated[SecretStr, AfterValidator(_long_key_or_raise)] | None = Field(
        None,
        description=(
            "Key that signs tokens and encrypts those of platforms, 32 characters or more. Default: a random key, "
            "stored in the database."
        ),
    )
    session_hours: int = Field(12, ge=1, le=720, description="Hours until a login ends.")
    idle_minutes: int = Field(
        180, ge=1, le=43_200, description="Minutes of inactivity (no page opened, no form sent) until a login ends."
    )
    worker_token_hours: int = Field(
        72, ge=1, le=720, description="Hours until an annotator's page must be opened again from its link."
    )
    retention_days: int | None = Field(
        None,
        ge=1,
        le=36_500,
        description="Longest time, in days after a campaign's finish, that Easel keeps annotators' ids, free text and "
        "telemetry. Campaigns may keep them for less. Empty: no limit.",
    )
    visits_per_address: int = Field(
        60,
        ge=1,
        description=(
            "New annotators of a campaign from one network address: this many at once, then this many per hour."
        ),
    )
    visits_per_campaign: int = Field(
        2000,
        ge=1,
        description="New annotators of a campaign from all addresses: this many at once, then this many per hour.",
    )
    untouched_per_address: int = Field(
        60, ge=1, description="Maximum number of untouched HITs of a campaign that one network address may hold."
    )
    untouched_per_campaign: int = Field(
        500, ge=1, description="Maximum number of untouched HITs of a campaign that all annotators together may hold."
    )
    untouched_minutes: int = Field(
        10,
        ge=1,
        le=1440,
        description="Minutes until an untouched HIT is given to others. A touched HIT is held for its whole lease.",
    )
    max_upload_mb: int = Field(64, ge=1, le=1024, description="Maximum size of a file of items or responses, in MB.")
    max_media_file_mb: int = Field(
        32, ge=1, le=1024, description="Maximum size of an image, recording or video in a zip of files, in MB."
    )
    max_media_mb: int = Field(512, ge=1, le=10_240, description="Maximum total size of the files of a campaign, in MB.")
    mturk_submit_origins: OriginsSetting = Field(
        (), description="Origins that a HIT may be posted back to, in addition to MTurk's two; comma-separated."
    )
    prolific_api_url: Annotated[str, AfterValidator(_secure_service_url_without_final_slash_or_raise)] = Field(
        "https://api.prolific.com/api/v1",
        description="Address of Prolific’s API, which gets the tokens that researchers enter.",
    )
    frame_ancestors: OriginsSetting = Field(
        (), description="Origins that may frame the MTurk page, in addition to MTurk's own; comma-separated."
    )

    oidc_issuer: Annotated[str, AfterValidator(_validate_issuer)] | None = Field(
        None,
        description="Issuer address of an OpenID Connect provider for logins. Without it, there are no such logins.",
    )
    oidc_client_id: str = Field("", description="Client id of this server at the provider.")
    oidc_client_secret: SecretStr = Field(SecretStr(""), description="Client secret of this server at the provider.")
    oidc_title: str = Field(
        "single sign-on", max_length=60, description="Name of the provider on the button of the login page."
    )
    oidc_domains: Annotated[
        tuple[str, ...], NoDecode, BeforeValidator(_split_at_commas_and_spaces), AfterValidator(_validate_mail_domains)
    ] = Field(
        (),
        description=(
            "E-mail domains whose users get an account at their first login; others must be invited. Comma-separated."
        ),
    )
    oidc_role: Literal["guest", "member", "viewer", "manager"] = Field(
        "guest", description="Server role of users who get an account by their e-mail domain."
    )

    smtp_url: Annotated[SecretStr, AfterValidator(_validate_smtp_url)] | None = Field(
        None,
        description=(
            "Mail server for alerts: smtp://name:password@host:587, or smtps://. Without it, Easel sends no e-mail."
        ),
    )
    smtp_from: Annotated[str, AfterValidator(_validate_mail_sender)] = Field(
        "easel@localhost", description="Sender address of e-mails, such as Easel <easel@example.org>."
    )
    webhooks_inside: bool = Field(
        default=False,
        description=(
            "1 lets campaigns send webhooks, and call platforms, on this machine, in private networks and without TLS."
        ),
    )

    log_format: Literal["text", "json"] = Field(
        "text",
        description=(
            "Format of the log on stderr: text, or json with a line for each request. Neither names annotators."
        ),
    )
    metrics_token: Annotated[SecretStr, AfterValidator(_long_key_or_raise)] | None = Field(
        None,
        description=(
            "Bearer token of /metrics for Prometheus, 32 characters or more. Without it, there is no such page."
        ),
    )

    @model_validator(mode="after")
    def require_complete_provider(self) -> Self:
        """Require all three settings of a login provider; without the issuer at most the secret."""
        if self.oidc_issuer and not (self.oidc_client_id and self.oidc_client_secret.get_secret_value()):
            raise ValueError("EASEL_OIDC_ISSUER needs EASEL_OIDC_CLIENT_ID and EASEL_OIDC_CLIENT_SECRET")
        if self.oidc_issuer:
            return self
        for field in ("oidc_client_id", "oidc_domains"):
            if getattr(self, field) != type(self).model_fields[field].default:
                raise ValueError(f"{environment_variable_name(field)} needs EASEL_OIDC_ISSUER")
        return self


def service_token_from_environment_or_none(variable: str) -> str | None:
    """Return the token in an environment variable; None if it is empty, or is no variable for tokens."""
    return environ.get(variable, "").strip() or None if variable.startswith(SERVICE_TOKEN_PREFIX) else None


def environment_variable_name(field: str) -> str:
    alias = Settings.model_fields[field].validation_alias
    return alias if isinstance(alias, str) else f"EASEL_{field.upper()}"


def secret_file_variable_name(field: str) -> str:
    return f"{environment_variable_name(field)}_FILE"


def set_environment_of_child_processes(field: str, value: str) -> None:
    """Let processes that this one starts read a setting from the environment, and not from its file."""
    environ.pop(secret_file_variable_name(field), None)
    environ[environment_variable_name(field)] = value


def easel_command_to_type() -> str:
    """Return the command to type for `easel` on this machine: neither `make setup` nor `uvx` puts it on the PATH."""
    if shutil.which("easel"):
        return "easel"
    return ".venv/bin/easel" if IS_CHECKOUT else str(Path(sys.executable).with_name("easel"))


def read_settings() -> Settings:
    """Return the settings from the environment. Raises SettingsProblem, which names each wrong variable."""
    secrets: dict[str, Any] = {
        field: _read_secret_file(field) for field in SECRET_SETTINGS if environ.get(secret_file_variable_name(field))
    }
    try:
        return Settings(**secrets)
    except ValidationError as error:
        raise SettingsProblem("; ".join(_iterate_setting_problem_sentences(error))) from None


# Set for each request by `middleware.SettingsOfApplication`.
SETTINGS_OF_REQUEST: ContextVar[Settings | None] = ContextVar("settings", default=None)


def settings_in_use() -> Settings:
    """Return the settings of the application whose request is answered; those from the environment in a command."""
    return SETTINGS_OF_REQUEST.get() or read_settings()


def _read_secret_file(field: str) -> str:
    """Return the secret in the file that `NAME_FILE` names, without the line break at its end."""
    variable, name = secret_file_variable_name(field), environment_variable_name(field)
    if environ.get(name):
        raise SettingsProblem(f"{name} and {variable} are both set. Unset one of them")
    path = Path(environ[variable])
    try:
        secret = path.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8"
        raise SettingsProblem(f"{variable} names {path}, which cannot be read: {reason}") from None
    if not secret:
        raise SettingsProblem(f"{variable} names {path}, which is empty")
    return secret


def _iterate_setting_problem_sentences(error: ValidationError) -> Iterable[str]:
    for problem in error.errors(include_url=False, include_input=False):
        field = str(problem["loc"][0]) if problem["loc"] else ""
        name = environment_variable_name(field) if field in Settings.model_fields else field
        message = problem["msg"].removeprefix("Value error, ").replace("Input should", "should", 1)
        yield f"{name} {message}".strip()
