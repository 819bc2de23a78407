"""PostgreSQL for the tests: one server per run, one database with the real migrations per process, empty for each test.

The server is the one DATABASE_URL names, or an embedded one on a temporary directory. Under pytest-xdist the
controlling process starts it and tells the workers where it is.
"""

import asyncio
import gc
import importlib
import os
import secrets
import shutil
import signal
import tempfile
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from argon2 import PasswordHasher
from fastapi import FastAPI
from hypothesis import settings
from sqlalchemy import NullPool, make_url, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from app.accounts import login, passwords, users
from app.accounts.secrets import csrf_token_of_session
from app.database import embedded, payment_tables, privacy_tables, quality_tables, session  # noqa: F401  (parts of the metadata)
from app.database.migrate import upgrade_schema
from app.database.schema import metadata
from app.database.session import create_engine
from app.inference.preferences import aware_bradley_terry_draws
from app.main import create_app, open_application
from app.settings import Settings
from tests.clusters import make_once
from tests.engines import Engines
from tests.first_imports import import_share
from tests.lanes import order_for_processes
from tests.servers import easel_serving

# The same examples on every run, and no stopwatch: a busy machine is not a failure.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

# The event loop of the server, if there is one for this system; it needs a tenth less processor time, too.
with suppress(ImportError), warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of Python 3.14
    asyncio.set_event_loop_policy(importlib.import_module("uvloop").EventLoopPolicy())

# Servers that are to end by a signal inherit what this process ignores, such as in the background of a script.
for sent, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(sent) is signal.SIG_IGN:
        signal.signal(sent, usual)

# A test's data need not survive a power cut. Autovacuum would connect to the template while it is copied.
FAST_POSTGRES_OPTIONS = {
    "fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "autovacuum": "off",
    "wal_level": "minimal", "max_wal_senders": "0", "checkpoint_timeout": "1h",
}  # fmt: skip
# To empty a database takes a hundredth of the time that it takes to copy and drop one.
DELETE_ALL_ROWS = text(
    # The audit log refuses to lose a line; without triggers nothing is checked either, which is quicker.
    "DO $$BEGIN SET LOCAL session_replication_role = replica; "
    + "".join(f"DELETE FROM {table.name}; " for table in reversed(metadata.sorted_tables))
    + "PERFORM setval(oid::regclass, 1, false) FROM pg_class WHERE relkind = 'S'; END$$"
)
DISCONNECT_OTHERS = text("""
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND pid <> ALL(:kept)
""")
COUNT_SCHEMA_OBJECTS = text("""
    SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace)
         + (SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace)
         + (SELECT count(*) FROM pg_trigger)
""")
STRONG_PASSWORD_HASHER = passwords.PASSWORD_HASHER  # before `cheap_passwords`
POSTERIOR_DRAWS, FEW_POSTERIOR_DRAWS = aware_bradley_terry_draws.DRAWS, 80
OBJECTS_BEFORE_COLLECTION = 10_000
SERVER = pytest.StashKey[str]()
RUNNING = pytest.StashKey[ExitStack]()


@contextmanager
def _server() -> Iterator[str]:
    """Run a server and yield its URL, which names the template database with the migrated schema."""
    with ExitStack() as stack:
        server = Settings().database_url
        if server is None:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="easel-tests-", dir="/tmp"))
            server = stack.enter_context(embedded.run_postgres_and_yield_url(Path(directory), FAST_POSTGRES_OPTIONS))
        template = f"easel_template_{secrets.token_hex(4)}"
        asyncio.run(_command(server, f"CREATE DATABASE {template}"))
        stack.callback(lambda: asyncio.run(_command(server, f"DROP DATABASE {template} WITH (FORCE)")))
        upgrade_schema(_database(server, template))
        yield _database(server, template)


def _database(server: str, name: str) -> str:
    return make_url(server).set(database=name).render_as_string(hide_password=False)


async def _command(server: str, statement: str) -> None:
    """Run what cannot be in a transaction, from a database that is neither a test's nor the template."""
    engine = create_async_engine(_database(server, "postgres"), poolclass=NullPool, isolation_level="AUTOCOMMIT")
    async with engine.connect() as connection:
        await connection.execute(text(statement))
    await engine.dispose()


def _server_of(config: pytest.Config) -> str:
    """Return the URL of the run's server, which starts when it is first needed."""
    if SERVER not in config.stash:
        config.stash[RUNNING] = ExitStack()
        config.stash[SERVER] = config.stash[RUNNING].enter_context(_server())
    return config.stash[SERVER]


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """pytest-xdist: called in the controller for each worker."""
    node.workerinput["server"] = _server_of(node.config)


def pytest_configure(config: pytest.Config) -> None:
    if worker := getattr(config, "workerinput", None):
        config.stash[SERVER] = worker["server"]


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[Any]:
    """Exempt what is imported and collected from garbage collection, which would take a tenth of the time."""
    gc.disable()
    try:
        if hasattr(session.config, "workerinput") and session.config.args_source is pytest.Config.ArgsSource.TESTPATHS:
            import_share(os.environ["PYTEST_XDIST_WORKER"], int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        # What is collected in a test is little and short-lived; with Python's 700 it takes twice the time.
        gc.set_threshold(OBJECTS_BEFORE_COLLECTION)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    slow, quick = ([item for item in items if bool(item.get_closest_marker("slow")) is lane] for lane in (True, False))
    # The test that may take longest begins first, or the last process would run it alone at the end.
    slow.sort(key=lambda item: item.get_closest_marker("timeout") is None)
    items[:] = order_for_processes(slow, quick, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def pytest_unconfigure(config: pytest.Config) -> None:
    if RUNNING in config.stash:
        config.stash[RUNNING].close()


@pytest.fixture(scope="session")
def template_url(pytestconfig: pytest.Config) -> str:
    """The migrated, empty database that others are copied from. Never connect to it."""
    return _server_of(pytestconfig)


@pytest.fixture(scope="session", autouse=True)
def cheap_passwords() -> Iterator[None]:
    """Hashes as strong as people's need 64 MiB and tens of milliseconds each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "PASSWORD_HASHER", PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
        yield


@pytest.fixture(scope="session", autouse=True)
def few_posterior_draws() -> Iterator[None]:
    """Most tests ask what is shown of the draws, not how exact they are: see `all_posterior_draws`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aware_bradley_terry_draws, "DRAWS", FEW_POSTERIOR_DRAWS)
        yield


@pytest.fixture
def all_posterior_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as the product takes."""
    monkeypatch.setattr(aware_bradley_terry_draws, "DRAWS", POSTERIOR_DRAWS)


@asynccontextmanager
async def _fresh_database(template_url: str) -> AsyncIterator[str]:
    name = f"easel_test_{secrets.token_hex(6)}"
    template = make_url(template_url).database
    await _command(template_url, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
    yield _database(template_url, name)
    await _command(template_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest_asyncio.fixture(scope="session")
async def emptied_database(template_url: str) -> AsyncIterator[Callable[[], Awaitable[str]]]:
    """Empty the one database that this process's tests use in turn, and yield its URL."""
    async with _fresh_database(template_url) as url:
        keeper = create_async_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        engines = Engines(url, asyncio.get_running_loop())
        async with keeper.connect() as connection, AsyncExitStack() as at_the_end:
            patch = at_the_end.enter_context(pytest.MonkeyPatch.context())
            patch.setattr(session, "create_async_engine", engines.create)
            at_the_end.push_async_callback(engines.close)
            objects = await connection.scalar(COUNT_SCHEMA_OBJECTS)

            async def emptied() -> str:
                assert await connection.scalar(COUNT_SCHEMA_OBJECTS) == objects, (
                    "the test before changed the schema: own_database"
                )
                await connection.execute(DISCONNECT_OTHERS, {"kept": engines.connections()})
                await connection.execute(DELETE_ALL_ROWS)
                return url

            yield emptied


@pytest_asyncio.fixture
async def database_url(
    request: pytest.FixtureRequest, template_url: str, emptied_database: Callable[[], Awaitable[str]]
) -> AsyncIterator[str]:
    """A database with the real schema and without a row. A test that changes the schema has the mark `own_database`."""
    if request.node.get_closest_marker("own_database"):
        async with _fresh_database(template_url) as url:
            yield url
    else:
        yield await emptied_database()


@pytest_asyncio.fixture(scope="session")
async def served_database_url(template_url: str) -> AsyncIterator[str]:
    """One database for all tests that share a running server; each makes campaigns of its own."""
    async with _fresh_database(template_url) as url:
        yield url


@pytest_asyncio.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """Yield an engine on this test's database, created as in the application."""
    engine = create_engine(database_url, pool_size=8)
    yield engine
    await engine.dispose()


@pytest.fixture(scope="session")
def applications() -> Callable[[str], FastAPI]:
    """Return a function that returns the application on a database; routes are created once, state at each start."""
    return cache(lambda database_url: create_app(Settings(database_url=database_url)))


@pytest_asyncio.fixture
async def app(database_url: str, applications: Callable[[str], FastAPI]) -> AsyncIterator[FastAPI]:
    """Yield the started application on this test's database."""
    app = applications(database_url)
    # FastAPI would begin and end a lifespan of each router, too; none has one.
    async with open_application(app, app.state.settings):
        yield app


@pytest.fixture(scope="session")
def demo_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data folder in which the demo was started once; creating a cluster takes as long as a start."""

    def start_demo(data: Path) -> None:
        with easel_serving(data, "--demo") as server:
            assert server.link

    return make_once(tmp_path_factory, "demo", start_demo)


@pytest.fixture
def demo_data(demo_once: Path, tmp_path: Path) -> Path:
    """Return a copy of the demo's data folder, so that a test may damage it."""
    return Path(shutil.copytree(demo_once, tmp_path / "data"))


def http_client(app: FastAPI) -> httpx.AsyncClient:
    """Return a client with its own cookies; crashes get the reply of a real server."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://easel.test", headers={"accept": "text/html"})


@pytest_asyncio.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client that is not logged in."""
    async with http_client(app) as client:
        yield client


@pytest_asyncio.fixture
async def researcher(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client logged in as `admin`, whose requests carry the CSRF token."""
    async with app.state.database.begin() as connection:
        now = datetime.now(UTC)
        admin = await users.find_oldest_user_or_create_admin(connection, now=now)
        session = await login.start_session_and_return_secret(connection, admin.id, now=now, hours=12)
    async with http_client(app) as client:
        client.cookies.set(app.state.cookie_name, session)
        client.headers["X-CSRF-Token"] = csrf_token_of_session(session)
        yield client
