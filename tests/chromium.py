"""Which browser the tests drive: one that is installed, else Playwright's own. As a program: get one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

# The shell first: a browser without windows takes a third less of the processor.
NAMES = ("chromium-headless-shell", "chromium", "google-chrome", "google-chrome-stable", "chromium-browser")
PLAYWRIGHT = [sys.executable, "-m", "playwright"]
ASK_PLAYWRIGHT = (
    "from playwright.sync_api import sync_playwright\nwith sync_playwright() as it: print(it.chromium.executable_path)"
)
APT_GET = ["apt-get", "-q", "-y", "-o=Dpkg::Use-Pty=0"]


def find() -> Path | None:
    """A Chromium that starts, the installed ones first."""
    installed = [Path(path) for name in NAMES if (path := shutil.which(name))]
    return next((path for path in installed if _starts(path)), None) or next(filter(_starts, _downloaded()), None)


def _downloaded() -> list[Path]:
    # In a process of its own: Playwright's synchronous API cannot be used inside a running event loop.
    asked = subprocess.run([sys.executable, "-c", ASK_PLAYWRIGHT], check=False, capture_output=True, text=True)
    path = Path(asked.stdout.strip())
    return [path] if path.is_file() else []


def _starts(path: Path) -> bool:
    """Ubuntu's /usr/bin/chromium-browser may be a stub that only asks for snap."""
    return subprocess.run([path, "--version"], check=False, capture_output=True, timeout=60).returncode == 0


def install() -> None:
    """Fetch a browser: Playwright's own, with the libraries it needs if we may, else the distribution's."""
    subprocess.run([*PLAYWRIGHT, "install", "chromium"], check=False, capture_output=True)
    if os.geteuid() != 0 or find():
        return
    if _downloaded():
        subprocess.run([*PLAYWRIGHT, "install-deps", "chromium"], check=False, stdin=subprocess.DEVNULL)
    else:
        _apt_get("update")
        for name in NAMES[:2]:
            if not find():
                _apt_get("install", "--no-install-recommends", name)


def _apt_get(*arguments: str) -> None:
    if shutil.which("apt-get"):
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run([*APT_GET, *arguments], check=False, env=quiet, stdin=subprocess.DEVNULL)


def main() -> None:
    """Say nothing when there is a browser; else fetch one, or end with one line."""
    if find():
        return
    sys.stderr.write("No Chromium found; fetching one for the browser tests.\n")
    install()
    if not find():
        sys.exit("The browser tests need Chromium. Install it (Debian: apt-get install chromium), then try again.")


if __name__ == "__main__":
    main()
