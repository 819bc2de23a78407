"""Easel for the tests' browsers: it takes presses on a task that has only just come, because tests are that quick, and
a dashboard that was refused asks again sooner.

A browser that sends `EARLY_PRESSES_HEADER` gets a page that ignores such presses: "until told", where the test ends the
moment by `END_MOMENT`, or "as usual", where time does. The server changes the script, because a browser whose requests
are intercepted has no cache and needs more of the processor. For the same reason a browser may keep scripts and styles:
it would ask for each of twenty scripts of a task again with every page, and during the tests they do not change.
"""

from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests import toys

EARLY_PRESSES = "/static/hit/early.js"
EARLY_PRESSES_HEADER = "x-early-presses"
END_MOMENT = "endMoment()"
DASHBOARD = "/static/admin/dashboard.js"
SCRIPT_TYPE = "text/javascript"


def create_app() -> ASGIApp:
    from app import main

    return let_static_files_be_kept(serve_hasty_scripts(main.create_app()))


def create_app_with_toys() -> ASGIApp:
    return let_static_files_be_kept(serve_hasty_scripts(toys.create_app()))


def serve_hasty_scripts(app: ASGIApp) -> ASGIApp:
    """Serve the application with a script that ignores no press, except where the browser asks for another one."""
    ignoring_none = change_script(EARLY_PRESSES, ("export function close() {", "export function close() {\n  return;"))
    until_told = change_script(
        EARLY_PRESSES,
        ("setTimeout(open, SEEN_FOR_MS)", "0"),
        ("const open =", "const open = globalThis.endMoment ="),
    )
    early_presses = {"": ignoring_none, "until told": until_told, "as usual": change_script(EARLY_PRESSES)}
    dashboard = change_script(DASHBOARD, ("RECONNECT_MS = 5000", "RECONNECT_MS = 500"))

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"] if scope["type"] == "http" else ""
        if path == EARLY_PRESSES:
            await early_presses[Headers(scope=scope).get(EARLY_PRESSES_HEADER, "")](scope, receive, send)
        else:
            await (dashboard if path == DASHBOARD else app)(scope, receive, send)

    return serve


def change_script(path: str, *changes: tuple[str, str]) -> Response:
    """Return a script of Easel with these changes of its text."""
    script = (Path(__file__).resolve().parents[2] / path.removeprefix("/")).read_text()
    for usual, replacement in changes:
        assert usual in script, usual
        script = script.replace(usual, replacement)
    return Response(script, media_type=SCRIPT_TYPE)


def let_static_files_be_kept(app: ASGIApp) -> ASGIApp:
    """Serve the application with static files that a browser asks for once."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_age(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 200:
                MutableHeaders(scope=message)["Cache-Control"] = "max-age=3600"
            await send(message)

        is_static_file = scope["type"] == "http" and scope["path"].startswith("/static/")
        await app(scope, receive, send_with_age if is_static_file else send)

    return serve
