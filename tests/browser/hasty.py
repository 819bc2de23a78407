"""Easel for the tests' browsers: it takes presses on a task that has only just come, because tests are that quick.

The server changes the script, because a browser whose requests are intercepted has no cache and needs more of the
processor.
"""

from pathlib import Path

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from tests import toys

EARLY_PRESSES = "/static/hit/early.js"
EARLY_PRESSES_SCRIPT = (Path(__file__).resolve().parents[2] / EARLY_PRESSES.removeprefix("/")).read_text()
SCRIPT_TYPE = "text/javascript"


def create_app() -> ASGIApp:
    from app import main

    return take_early_presses(main.create_app())


def create_app_with_toys() -> ASGIApp:
    return take_early_presses(toys.create_app())


def take_early_presses(app: ASGIApp) -> ASGIApp:
    """Serve the application with a script that ignores no press."""
    close = "export function close() {"
    assert close in EARLY_PRESSES_SCRIPT
    script = Response(EARLY_PRESSES_SCRIPT.replace(close, f"{close}\n  return;"), media_type=SCRIPT_TYPE)

    async def hasty(scope: Scope, receive: Receive, send: Send) -> None:
        is_script = scope["type"] == "http" and scope["path"] == EARLY_PRESSES
        await (script if is_script else app)(scope, receive, send)

    return hasty
