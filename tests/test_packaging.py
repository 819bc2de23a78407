"""The files around the code: the version, the lock, the Makefile, the wheel, the image and the compose file."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest
import yaml

from app.main import create_app
from app.settings import (
    SECRET_SETTINGS,
    Settings,
    environment_variable_name,
    read_settings,
    secret_file_variable_name,
)
from tests.servers import easel_serving

ROOT = Path(__file__).resolve().parents[1]
PROJECT = (ROOT / "pyproject.toml").read_text()
LOCK = (ROOT / "requirements.lock").read_text()
BIN = Path(sys.executable).parent
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the tool's wheel exists for Linux only")


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    # A make that started the tests hands down its flags and the Python it was told; neither is for a make started here.
    handed_down = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "PYTHON")
    inherited = {name: value for name, value in os.environ.items() if name not in handed_down}
    return subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=cwd, env={**inherited, **environment}
    )


def direct_requirements() -> list[str]:
    project = tomllib.loads(PROJECT)
    groups = project["dependency-groups"]
    assert {"include-group": "docs"} in groups["dev"]  # the lock is that of `dev`
    of_groups = [one for group in groups.values() for one in group if isinstance(one, str)]
    return [*project["project"]["dependencies"], *of_groups]


def requirement_name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9_-]+", requirement)
    assert found
    return found[0].lower()


# The version

VERSION = tomllib.loads(PROJECT)["project"]["version"]


def test_every_place_has_the_version_of_the_project():
    assert create_app(Settings()).version == VERSION
    assert run(BIN / "easel", "--version").stdout == f"{VERSION}\n"
    assert f'\nversion: "{VERSION}"\n' in (ROOT / "CITATION.cff").read_text()
    released = re.findall(r"^## \[(\d.*?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert released[0] == VERSION


# The lock


def test_every_requirement_is_locked():
    locked = set(re.findall(r"^([a-z0-9-]+)==", LOCK, re.MULTILINE))
    assert {requirement_name(requirement) for requirement in direct_requirements()} <= locked


def test_every_locked_version_has_hashes():
    entries = re.split(r"\n(?=[a-z])", LOCK.strip())
    assert entries
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []


def test_the_lock_holds_no_address():
    assert re.findall(r".*(?:://|index-url|find-links|\.org|\.com).*", LOCK) == []


def test_every_dependency_says_why_it_is_there():
    lines = PROJECT.splitlines()
    silent = []
    for number, line in enumerate(lines):
        quoted = re.match(r'    "([a-z][a-zA-Z0-9_-]+)(\[[a-z]+\])?>=', line)
        before = lines[number - 1].strip()
        if quoted and "#" not in line and not before.startswith("#"):
            silent.append(quoted[1])
    assert silent == []


# The Makefile


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a fresh checkout, as far as the setup is concerned."""
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def failed_setup(checkout: Path, *variables: str) -> str:
    """Run a setup that fails, and return the line that explains why; make's own line follows it."""
    made = run("make", "setup", *variables, cwd=checkout)
    assert made.returncode != 0
    ours, makes_own = made.stderr.strip().splitlines()
    assert makes_own.startswith("make:")
    assert not (checkout / ".venv").exists()
    return ours


def test_make_alone_lists_every_target_a_person_wants():
    listed = set(re.findall(r"^make (\w+)", run("make").stdout, re.MULTILINE))
    assert listed == {"run", "test", "check", "setup", "lint", "bench", "docs", "words", "lock", "sbom", "clean"}


def test_an_old_python_is_told_in_one_line(checkout):
    assert "Python 3.11 or newer" in failed_setup(checkout, "PYTHON=")


def test_a_full_disk_is_told_in_one_line(checkout):
    assert "99999999 MB of free disk" in failed_setup(checkout, "FREE_MB=99999999")


def test_a_missing_venv_module_is_told_in_one_line(checkout):
    assert "apt-get install python3-venv" in failed_setup(checkout, "PYTHON=false")


def test_a_python_newer_than_python3_is_found_beside_it(checkout, tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tools / "python3.12").write_text("#!/bin/sh\nexit 0\n")
    for tool in tools.iterdir():
        tool.chmod(0o755)
    made = run("make", "-n", "setup", cwd=checkout, PATH=f"{tools}:{os.environ['PATH']}")
    assert "python3.12 -m venv" in made.stdout


# The wheel


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Return the command `easel` of a wheel in its own environment, with the packages of this one."""
    offline = ("--offline", "--quiet")
    built = run(BIN / "uv", "build", *offline, "--no-build-isolation", "--out-dir", tmp_path / "dist")
    assert built.returncode == 0, built.stderr
    environment = tmp_path / "environment"
    made = run(BIN / "uv", "venv", *offline, "--python", sys.executable, environment)
    assert made.returncode == 0, made.stderr
    wheel = tmp_path / "dist" / f"easel-{VERSION}-py3-none-any.whl"
    put = run(BIN / "uv", "pip", "install", *offline, "--no-deps", "--python", environment / "bin" / "python", wheel)
    assert put.returncode == 0, put.stderr
    (packages,) = environment.glob("lib/python*/site-packages")
    # Python does not read the .pth files of a folder that a .pth file names, so this checkout is not on the path.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return environment / "bin" / "easel"


def test_a_wheel_serves_the_demo_from_an_empty_environment(installed):
    folder = installed.parents[1]
    imported = run(installed.with_name("python"), "-c", "import app; print(app.__file__)", cwd=folder).stdout
    assert Path(imported).is_relative_to(folder)
    with TemporaryDirectory(prefix="easel-wheel-", dir="/tmp") as data:
        command = (str(installed), "serve", "--demo", "--port", "0")
        serving = easel_serving(Path(data), command=command, PATH=os.defpath)
        with serving as server, httpx.Client(follow_redirects=True, timeout=60) as client:
            assert f"`{installed} login`" in server.welcome
            login = run(installed, "login", cwd=folder, EASEL_DATA_DIR=data, DATABASE_URL="").stdout.split()[0]
            welcome = client.get(server.link)
            assert "Lexical frequency" in welcome.text
            (style,) = re.findall(r'href="(/static/easel\.css[^"]*)"', welcome.text)
            assert client.get(server.base + style).headers["content-type"].startswith("text/css")
            address, _, token = login.partition("?token=")
            assert "Lexical frequency" in client.post(address, data={"token": token}).text
            assert "Upgrading" in client.get(f"{server.base}/admin/help/operators/upgrading").text
            assert client.get(f"{server.base}/api/v1/openapi.json").json()["info"]["version"] == VERSION


# The image and the compose file


def composed(publish: str = "") -> Any:
    made = run(BIN / "docker-compose", "config", "--format", "json", POSTGRES_PASSWORD="secret", EASEL_PUBLISH=publish)
    assert made.stderr == ""
    return json.loads(made.stdout)["services"]


@on_linux
def test_the_compose_file_is_clean():
    made = run(BIN / "docker-compose", "config", "--quiet", POSTGRES_PASSWORD="secret")
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")


@on_linux
def test_a_missing_password_is_named():
    made = run(BIN / "docker-compose", "config", "--quiet", POSTGRES_PASSWORD="")
    assert made.returncode != 0
    assert "put POSTGRES_PASSWORD=... into .env" in made.stderr


def test_every_setting_of_the_server_is_in_the_compose_file_and_no_other():
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    known = {environment_variable_name(field) for field in Settings.model_fields}
    secrets_in_files = {secret_file_variable_name(field) for field in SECRET_SETTINGS} - {"DATABASE_URL_FILE"}
    of_the_image = set(re.findall(r"\b(EASEL_\w+)=", (ROOT / "Dockerfile").read_text()))
    assert of_the_image <= known
    for name in ("app", "migrate"):
        assert set(services[name]["environment"]) | of_the_image == known | secrets_in_files


@on_linux
def test_each_service_has_a_limit_of_memory_and_the_app_writes_to_volumes_only():
    services = composed()
    assert all(int(service["mem_limit"]) >= 2**30 for service in services.values())
    assert {volume["target"]: volume["type"] for volume in services["app"]["volumes"]} == {
        "/tmp": "volume",
        "/var/lib/easel": "volume",
    }


@on_linux
def test_the_settings_that_the_compose_file_leaves_empty_have_their_defaults(monkeypatch):
    for name, value in composed()["app"]["environment"].items():
        monkeypatch.setenv(name, value or "")
    assert read_settings() == Settings(
        database_url="postgresql://easel:secret@postgres/easel", workers=2, backup_dir=Path("/var/lib/easel/backups")
    )


@on_linux
def test_migrations_end_before_the_app_starts():
    services = composed()
    assert services["migrate"]["command"] == ["easel", "migrate"]
    assert services["migrate"]["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert services["app"]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"


@on_linux
def test_the_data_lie_in_a_volume_and_an_init_reaps_for_postgresql():
    postgres = composed()["postgres"]
    assert postgres["init"] is True
    assert [volume["type"] for volume in postgres["volumes"]] == ["volume"]


@on_linux
def test_nothing_is_open_to_the_network_unless_asked():
    assert composed()["app"]["ports"][0]["host_ip"] == "127.0.0.1"
    assert "host_ip" not in composed(publish="80")["app"]["ports"][0]
    assert "ports" not in composed()["postgres"]


@on_linux
def test_the_app_may_do_nothing_it_need_not():
    app = composed()["app"]
    assert app["cap_drop"] == ["ALL"]
    assert app["read_only"] is True


@on_linux
def test_the_dockerfile_is_clean():
    made = run(BIN / "hadolint", "Dockerfile")
    assert (made.returncode, made.stdout) == (0, "")


def test_the_image_runs_as_a_normal_user_and_is_watched():
    last_stage = (ROOT / "Dockerfile").read_text().rpartition("\nFROM ")[2]
    assert re.search(r"^USER [1-9]\d*$", last_stage, re.MULTILINE)
    assert "/ready" in last_stage.partition("HEALTHCHECK")[2]
