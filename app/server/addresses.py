"""Addresses at which people reach the server; commands print links with them."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from app.settings import Settings

ADDRESS_FILE_NAME = "address"  # in the data directory


def server_url(settings: Settings, port: int) -> str:
    """Return the URL at which people reach this server."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104  (not bound here)
    return settings.public_url or f"http://{f'[{host}]' if ':' in host else host}:{port}"


@contextmanager
def publish_server_url_during_context(settings: Settings, base_url: str) -> Iterator[None]:
    """Publish the server's URL to commands on the same data during this block, in a file that this process locks.

    A server on the operator's database has no data folder, so commands use the URL in the settings.
    """
    if settings.database_url is not None:
        yield
        return
    path = settings.data_dir.expanduser() / ADDRESS_FILE_NAME
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # released with this process, however it ends
        file.write(base_url)
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def published_server_url_or_none(settings: Settings) -> str | None:
    """Return the URL of the server that runs on this data now, or None if there is none, or it was killed."""
    if settings.database_url is None:
        with suppress(OSError), (settings.data_dir.expanduser() / ADDRESS_FILE_NAME).open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return file.read() or None
    return None


def may_server_run_on_same_data(settings: Settings) -> bool:
    """Return whether a server may run on this data; always True for the operator's database, where none is known."""
    return settings.database_url is not None or published_server_url_or_none(settings) is not None


def probable_public_server_url(settings: Settings) -> str:
    """Return the URL at which people probably reach Easel, as seen from outside the server."""
    return settings.public_url or published_server_url_or_none(settings) or server_url(settings, settings.port)
