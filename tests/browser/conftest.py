"""A real server in a process of its own, a real Chromium, and a small page that stands for MTurk on another origin."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urljoin

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright, expect
from sqlalchemy import insert, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from app.accounts import login
from app.accounts.secrets import load_or_create_installation_key, session_cookie_name
from app.accounts.users import find_oldest_user_or_create_admin
from app.campaigns import lifecycle
from app.campaigns.settings import CampaignSettings
from app.database import tables
from app.designs.campaign import Campaign
from tests import chromium, servers
from tests.browser.acts import PATIENT_MS
from tests.browser.contexts import DEFAULT_VIEWPORT, ONE_PROCESS_SWITCH, BrowserContexts
from tests.browser.hasty import EARLY_PRESSES_HEADER
from tests.browser.plain_page import PlainPage

VERBS = ["abide", "run", "accrue", "accuse", "make", "go", "ponder", "bring", "hum", "eat"]
CHROMIUM_SWITCHES = [
    "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", ONE_PROCESS_SWITCH,
]  # fmt: skip
expect.set_options(timeout=PATIENT_MS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@dataclass
class Crowd:
    """A page on another origin that frames a HIT as MTurk does and takes what is posted back."""

    origin: str
    posted: list[dict[str, str]] = field(default_factory=list)

    def frame(self, url: str) -> str:
        """The address of a page whose frame shows `url`."""
        return f"{self.origin}/?frame={quote(url, safe='')}"


@pytest.fixture(scope="session")
def crowd_server() -> Iterator[Crowd]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            source = dict(parse_qsl(self.path.partition("?")[2])).get("frame", "about:blank")
            source = source.replace("&", "&amp;").replace('"', "&quot;")
            self.reply(f'<iframe title="task" name="task" width="1000" height="760" src="{source}"></iframe>')

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            taken.posted.append(dict(parse_qsl(body)) | {"path": self.path})
            self.reply("<p>Taken by the crowd platform.</p>")

        def reply(self, body: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(f"<!doctype html><html lang=en><title>Crowd</title>{body}".encode())

        def log_message(self, *_: Any) -> None:
            """A test's output is what failed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    # Another host name, so that to a browser it is another site, as MTurk is.
    taken = Crowd(f"http://localhost:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield taken
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def crowd(crowd_server: Crowd) -> Crowd:
    crowd_server.posted.clear()
    return crowd_server


@pytest.fixture(scope="session")
def origin(served_database_url: str, crowd_server: Crowd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running Easel."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("EASEL_")}
    environment |= {
        "DATABASE_URL": served_database_url,
        "EASEL_MTURK_SUBMIT_ORIGINS": crowd_server.origin,
        "EASEL_FRAME_ANCESTORS": crowd_server.origin,
    }
    said = tmp_path_factory.mktemp("served") / "said"
    with servers.serving(environment, said, "tests.browser.hasty:create_app") as (_, address):
        yield address


@pytest_asyncio.fixture(scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=chromium.find(), chromium_sandbox=False, args=CHROMIUM_SWITCHES
        )
        yield browser
        await browser.close()


@dataclass
class Visit:
    """A browser context of one person, and what went wrong on its pages."""

    page: Page
    problems: list[str]
    shown: list[str]
    requested: list[str] | None


@pytest_asyncio.fixture(scope="session")
async def browser_contexts(browser: Browser) -> AsyncIterator[BrowserContexts]:
    contexts = BrowserContexts(browser)
    yield contexts
    await contexts.close()


@pytest_asyncio.fixture
async def visit(request: pytest.FixtureRequest, browser_contexts: BrowserContexts) -> AsyncIterator[Callable[..., Any]]:
    """Opens a page for a new person; at the end no page may have said anything on its console.

    early_presses: how long presses on a task that has only just come are ignored, by `hasty`; not at all if empty.
    requests_noted: whether the visit has what its page `requested`, of which the browser tells one by one.
    """
    visits: list[Visit] = []

    async def open_page(*, early_presses: str = "", requests_noted: bool = False, **options: Any) -> Visit:
        options = {"viewport": DEFAULT_VIEWPORT} | options
        if early_presses:
            options["extra_http_headers"] = {EARLY_PRESSES_HEADER: early_presses}
        is_for_one_test = request.node.get_closest_marker("new_browser_context") is not None
        page = (
            await browser_contexts.open_page_in_new_context(options)
            if is_for_one_test
            else await browser_contexts.open_page(options)
        )
        visit = Visit(page, [], [], [] if requests_noted else None)
        visits.append(visit)
        visit.page.context.set_default_timeout(PATIENT_MS)
        # A request that failed is often what a test is about; the page itself must still say nothing.
        visit.page.on(
            "console",
            lambda line: (
                visit.problems.append(line.text)
                if line.type == "error" and not line.text.startswith("Failed to load resource")
                else None
            ),
        )
        visit.page.on("pageerror", lambda error: visit.problems.append(str(error)))
        visit.page.on("framenavigated", lambda frame: visit.shown.append(frame.url))
        if (requested := visit.requested) is not None:
            visit.page.on("request", lambda request: requested.append(request.url))
        return visit

    yield open_page
    for visit in visits:
        await browser_contexts.reset_and_keep(visit.page.context, {*visit.shown})
    assert [visit.problems for visit in visits if visit.problems] == []


@pytest_asyncio.fixture
async def plain(origin: str) -> AsyncIterator[Callable[..., Any]]:
    """Opens a page for a new person whose browser runs no scripts; with the `cookie`, for a researcher."""
    async with AsyncExitStack() as stack:

        async def open_page(address: str, cookie: Any = None, **headers: str) -> PlainPage:
            client = httpx.AsyncClient(
                headers={"accept": "text/html"} | headers,
                follow_redirects=True,
                verify=False,
                timeout=PATIENT_MS / 1000,
            )
            page = PlainPage(await stack.enter_async_context(client))
            if cookie:
                client.cookies.set(cookie["name"], cookie["value"])
            await page.goto(urljoin(origin, address))
            return page

        yield open_page


@pytest_asyncio.fixture(scope="session")
async def served(served_database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on the database that the server uses."""
    engine = create_async_engine(served_database_url)
    yield engine
    await engine.dispose()


@pytest_asyncio.fixture
async def session(served: AsyncEngine) -> str:
    """The secret of a researcher who is logged in."""
    now = datetime.now(UTC)
    async with served.begin() as connection:
        return await login.start_session_and_return_secret(
            connection, (await find_oldest_user_or_create_admin(connection, now=now)).id, now=now, hours=1
        )


@pytest_asyncio.fixture
async def cookie(served: AsyncEngine, session: str, origin: str) -> Any:
    """The cookie that a browser keeps of the session."""
    async with served.begin() as connection:
        return {
            "name": session_cookie_name(await load_or_create_installation_key(connection)),
            "value": session,
            "url": origin,
        }


@dataclass
class Task:
    """A running campaign, its addresses, and what was stored."""

    engine: AsyncEngine
    origin: str
    row: Campaign

    @property
    def link(self) -> str:
        return f"{self.origin}/link/{self.row.link_key}"

    def prolific(self, person: str = "p1", session: str = "s1") -> str:
        parameters = {"PROLIFIC_PID": person, "STUDY_ID": "study", "SESSION_ID": session}
        return f"{self.origin}/prolific/{self.row.link_key}?{urlencode(parameters)}"

    def mturk(self, crowd: Crowd, assignment: str = "A1") -> str:
        parameters = {"assignmentId": assignment, "hitId": "H1", "workerId": "W1", "turkSubmitTo": crowd.origin}
        return f"{self.origin}/mturk/{self.row.link_key}?{urlencode(parameters)}"

    async def rows(self, statement: str) -> list[Any]:
        async with self.engine.connect() as connection:
            return list(await connection.execute(text(statement), {"campaign": self.row.id}))

    async def responses(self) -> list[Any]:
        """All responses in the order in which they were applied."""
        return await self.rows("""
            SELECT *, values AS scores, telemetry ->> 'viewport' AS viewport,
                   ARRAY(SELECT jsonb_array_elements(telemetry -> 'first_touch_ms')::int) AS first_touch_ms,
                   ARRAY(SELECT jsonb_array_elements(telemetry -> 'changes')::int) AS changes,
                   ARRAY(SELECT jsonb_array_elements_text(telemetry -> 'input_kinds')) AS input_kinds
            FROM responses WHERE campaign_id = :campaign ORDER BY seq
        """)

    async def scores(self) -> list[dict[str, float]]:
        """Of each response the scores by the item's text."""
        texts = {row.number: row.shown for row in await self.rows("SELECT * FROM items WHERE campaign_id = :campaign")}
        return [
            {texts[item]: score for item, score in zip(response.items, response.scores, strict=True)}
            for response in await self.responses()
        ]

    async def draft(self) -> dict[str, Any] | None:
        (row,) = await self.rows("SELECT draft FROM hits WHERE campaign_id = :campaign AND closed_at IS NULL")
        draft: dict[str, Any] | None = row.draft
        return draft

    async def draft_saved(self) -> dict[str, Any]:
        """The draft, as soon as there is one: a page that is left sends it when nobody can wait for the reply."""
        async with asyncio.timeout(PATIENT_MS / 1000):
            while (draft := await self.draft()) is None:  # noqa: ASYNC110  (another process changes it)
                await asyncio.sleep(0.02)
        return draft

    async def set(self, assignments: str) -> None:
        """Change the campaign behind everyone's back."""
        await self.execute(f"UPDATE campaigns SET {assignments} WHERE id = :campaign")

    async def expire_leases(self) -> None:
        await self.execute(
            "UPDATE hits SET expires_at = now() - interval '1 second' "
            "WHERE campaign_id = :campaign AND closed_at IS NULL"
        )

    async def someone_else_holds_a_hit(self) -> None:
        async with httpx.AsyncClient() as client:
            (await client.get(self.prolific("someone else"))).raise_for_status()

    async def execute(self, statement: str) -> None:
        async with self.engine.begin() as connection:
            await connection.execute(text(statement), {"campaign": self.row.id})


@pytest_asyncio.fixture(scope="session")
async def task(served: AsyncEngine, origin: str) -> Callable[..., Any]:
    """Makes a running campaign: `await task(texts=[...], judgments_per_item=1)`."""

    async def make(texts: list[str] = VERBS, *, launched: bool = True, **settings: Any) -> Task:
        now = datetime.now(UTC)
        defaults: dict[str, Any] = {
            "name": "Lexical frequency", "question": "How often is this verb used?", "low_label": "very rare",
            "high_label": "very frequent", "judgments_per_item": 1, "repeat_items": True, "welcome": False,
            "instructions": "Think of *all* texts you read.\n\n- books\n- messages",
        }  # fmt: skip
        async with served.begin() as connection:
            row = await lifecycle.create_draft_campaign_or_refuse(
                connection, CampaignSettings(**defaults | settings), now=now
            )
            items = [
                {"campaign_id": row.id, "number": number, "external_id": str(number), "shown": shown, "fields": {}}
                for number, shown in enumerate(texts)
            ]
            await connection.execute(insert(tables.items), items)
            if launched:
                row = await lifecycle.change_campaign_status_or_refuse(connection, row.slug, "launch", now=now)
        return Task(served, origin, row)

    return make
