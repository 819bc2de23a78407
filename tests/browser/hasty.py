"""Easel for the tests' browsers: it takes presses on a task that has only just come, because tests are that quick.

The server changes the script, because a browser whose requests are intercepted has no cache and needs more of the
processor. For the same reason a browser may keep scripts and styles: it would ask for each of twenty scripts of a task
again with every page, and during the tests they do not change.
"""

from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests import toys

EARLY_PRESSES = "/static/hit/early.js"
EARLY_PRESSES_SCRIPT = (Path(__file__).resolve().parents[2] / EARLY_PRESSES.removeprefix("/")).read_text()
SCRIPT_TYPE = "text/javascript"


def create_app() -> ASGIApp:
    from app import main

    return let_static_files_be_kept(take_early_presses(main.create_app()))


def create_app_with_toys() -> ASGIApp:
    return let_static_files_be_kept(take_early_presses(toys.create_app()))


def take_early_presses(app: ASGIApp) -> ASGIApp:
    """Serve the application with a script that ignores no press."""
    close = "export function close() {"
    assert close in EARLY_PRESSES_SCRIPT
    script = Response(EARLY_PRESSES_SCRIPT.replace(close, f"{close}\n  return;"), media_type=SCRIPT_TYPE)

    async def hasty(scope: Scope, receive: Receive, send: Send) -> None:
        is_script = scope["type"] == "http" and scope["path"] == EARLY_PRESSES
        await (script if is_script else app)(scope, receive, send)

    return hasty


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
