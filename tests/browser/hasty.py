"""Easel for the tests' browsers: it takes presses on a task that has only just come, because tests are that quick.

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
EARLY_PRESSES_SCRIPT = (Path(__file__).resolve().parents[2] / EARLY_PRESSES.removeprefix("/")).read_text()
EARLY_PRESSES_HEADER = "x-early-presses"
END_MOMENT = "endMoment()"
SCRIPT_TYPE = "text/javascript"


def create_app() -> ASGIApp:
    from app import main

    return let_static_files_be_kept(take_early_presses(main.create_app()))


def create_app_with_toys() -> ASGIApp:
    return let_static_files_be_kept(take_early_presses(toys.create_app()))


def take_early_presses(app: ASGIApp) -> ASGIApp:
    """Serve the application with a script that ignores no press, except where the browser asks for another one."""
    hasty = replace_in_script("export function close() {", "export function close() {\n  return;")
    never_by_itself = replace_in_script("setTimeout(open, SEEN_FOR_MS)", "0").replace(
        "const open =", "const open = globalThis.endMoment ="
    )
    scripts = {"": hasty, "until told": never_by_itself, "as usual": EARLY_PRESSES_SCRIPT}
    replies = {wish: Response(script, media_type=SCRIPT_TYPE) for wish, script in scripts.items()}

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        is_script = scope["type"] == "http" and scope["path"] == EARLY_PRESSES
        wish = Headers(scope=scope).get(EARLY_PRESSES_HEADER, "") if is_script else ""
        await (replies[wish] if is_script else app)(scope, receive, send)

    return serve


def replace_in_script(usual: str, replacement: str) -> str:
    assert usual in EARLY_PRESSES_SCRIPT
    return EARLY_PRESSES_SCRIPT.replace(usual, replacement)


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
