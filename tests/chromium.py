"""Which browser the tests drive: one that is installed, else Playwright's own. As a program: see to it that there is one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "google-chrome", "google-chrome-stable", "chromium-browser")
PLAYWRIGHT = [sys.executable, "-m", "playwright"]
APT_GET = ["apt-get", "-q", "-y", "-o=Dpkg::Use-Pty=0"]


def find() -> Path | None:
    """A Chromium that starts, the installed ones first."""
    installed = [Path(path) for name in NAMES if (path := shutil.which(name))]
    return next((path for path in [*installed, *_playwrights_own()] if _starts(path)), None)


def _playwrights_own() -> list[Path]:
    ask = "from playwright.sync_api import sync_playwright as p\nwith p() as it: print(it.chromium.executable_path)"
    # In a process of its own: the synchronous API cannot be used inside a running event loop.
    said = subprocess.run(
        [sys.executable, "-c", ask], check=False, capture_output=True, text=True
    ).stdout.strip()
    return [Path(said)] if said and Path(said).exists() else []


def _starts(path: Path) -> bool:
    """Ubuntu's /usr/bin/chromium-browser may be a stub that only asks for snap."""
    return subprocess.run([path, "--version"], check=False, capture_output=True, timeout=60).returncode == 0


def install() -> None:
    """Fetch a browser: Playwright's own, with the libraries it needs if we may, else the distribution's."""
    root = os.geteuid() == 0 and shutil.which("apt-get") is not None
    _run([*PLAYWRIGHT, "install", "chromium"])
    if not find() and root:
        _run([*PLAYWRIGHT, "install-deps", "chromium"])
    if not find() and root:
        _run([*APT_GET, "update"])
        _run([*APT_GET, "install", "--no-install-recommends", "chromium"])


def _run(command: list[str]) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(command, check=False, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr)


def main() -> None:
    if not find():
        print("No Chromium found; fetching one for the browser tests.", file=sys.stderr)
        install()
    if not find():
        sys.exit(
            "The browser tests need Chromium. Install it (Debian: apt-get install chromium), then try again."
        )


if __name__ == "__main__":
    main()
