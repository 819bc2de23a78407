"""Build the documentation as `make docs` does, for tests."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KATEX = ROOT / "static" / "vendor" / "katex"
NO_NETWORK = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")


def build_site(folder: Path) -> Path:
    """Build the strict site without a network from a copy of docs/ in `folder`, and return its own folder."""
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copy(ROOT / ".mkdocs.yml", folder)
    built = subprocess.run(
        [Path(sys.executable).with_name("zensical"), "build", "--config-file", ".mkdocs.yml", "--strict", "--clean"],
        cwd=folder,
        env=os.environ | NO_NETWORK,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    shutil.copytree(KATEX, folder / "site" / "assets" / "katex")
    return folder / "site"
