"""What runs on the machines: etcd, Patroni with PostgreSQL, Easel; and haproxy before all of them."""

import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from examples.cluster.machines import Machine, find_postgres_programs

EASEL_PORT, BALANCER_PORT = 8080, 8187
PATRONI_PORT, POSTGRES_PORT = 8008, 5432
ETCD_PORT, ETCD_PEER_PORT = 2379, 2380
DATABASE = "easel"


@dataclass(frozen=True)
class Secrets:
    """Passwords of the cluster, drawn anew for each."""

    postgres: str = field(default_factory=secrets.token_hex)
    replication: str = field(default_factory=secrets.token_hex)
    easel: str = field(default_factory=secrets.token_hex)
    key: str = field(default_factory=secrets.token_hex)


def prepare_machine(machine: Machine, machines: Sequence[Machine], passwords: Secrets) -> None:
    """Write the settings of the services onto a machine's disk, and say what is to run on it."""
    folders = {name: machine.folder / name for name in ("etcd", "patroni", "postgresql")}
    for folder in folders.values():
        folder.mkdir(mode=0o700)
    settings = folders["patroni"] / "settings.json"  # JSON is YAML, too
    settings.write_text(json.dumps(patroni_settings(machine, machines, passwords), indent=2))
    for path in (*folders.values(), settings):
        shutil.chown(path, "postgres", "postgres")
    machine.commands |= {
        "etcd": (etcd_command(machine, machines), {}, "postgres"),
        "patroni": (["patroni", str(settings)], {"LC_ALL": "C.UTF-8"}, "postgres"),
        "easel": (
            [sys.executable, "-m", "app.cli", "serve", "--host", "0.0.0.0", "--port", str(EASEL_PORT)],
            easel_environment(machine, machines, passwords),
            "root",
        ),
    }


def etcd_command(machine: Machine, machines: Sequence[Machine]) -> list[str]:
    """Return the command of etcd, which agrees with the two others about who leads."""
    members = ",".join(f"{one.name}=http://{one.address}:{ETCD_PEER_PORT}" for one in machines)
    here, peer = f"http://{machine.address}:{ETCD_PORT}", f"http://{machine.address}:{ETCD_PEER_PORT}"
    return [
        "etcd", "--name", machine.name, "--data-dir", str(machine.folder / "etcd"),
        "--listen-client-urls", here, "--advertise-client-urls", here,
        "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
        "--initial-cluster", members, "--initial-cluster-state", "new", "--log-level", "warn",
    ]  # fmt: skip


def patroni_settings(machine: Machine, machines: Sequence[Machine], passwords: Secrets) -> dict[str, Any]:
    """Return Patroni's settings. A commit waits until a standby has it, so a failover loses no acknowledged answer."""
    network = "10.87.0.0/24"
    return {
        "scope": "easel",
        "name": machine.name,
        "restapi": {
            "listen": f"{machine.address}:{PATRONI_PORT}", "connect_address": f"{machine.address}:{PATRONI_PORT}"
        },
        "etcd3": {"hosts": [f"{one.address}:{ETCD_PORT}" for one in machines]},
        "bootstrap": {
            # A leader that cannot reach two of three etcd gives up after `ttl` seconds, 20 at least.
            "dcs": {
                "ttl": 20, "loop_wait": 3, "retry_timeout": 5, "synchronous_mode": True,
                "postgresql": {"use_pg_rewind": True, "parameters": {"max_connections": 60}},
            },
            "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, "data-checksums"],
        },
        "postgresql": {
            "listen": f"{machine.address}:{POSTGRES_PORT}",
            "connect_address": f"{machine.address}:{POSTGRES_PORT}",
            "data_dir": str(machine.folder / "postgresql"),
            "bin_dir": str(find_postgres_programs()),
            "pgpass": str(machine.folder / "patroni" / "pgpass"),
            "pg_hba": [
                f"host replication replication {network} scram-sha-256",
                f"host all all {network} scram-sha-256",
                "local all all scram-sha-256",
            ],
            "parameters": {"unix_socket_directories": "", "password_encryption": "scram-sha-256"},
            "authentication": {
                "superuser": {"username": "postgres", "password": passwords.postgres},
                "replication": {"username": "replication", "password": passwords.replication},
                "rewind": {"username": "postgres", "password": passwords.postgres},
            },
        },
    }  # fmt: skip


def database_url(machines: Sequence[Machine], user: str, password: str, database: str) -> str:
    """Return the address of whichever PostgreSQL accepts writes."""
    servers = ",".join(f"{machine.address}:{POSTGRES_PORT}" for machine in machines)
    return f"postgresql://{user}:{password}@{servers}/{database}"


def easel_environment(machine: Machine, machines: Sequence[Machine], passwords: Secrets) -> dict[str, str]:
    """Return the settings of Easel on a machine: all share the database and the key."""
    return {
        "DATABASE_URL": database_url(machines, "easel", passwords.easel, DATABASE),
        "EASEL_SECRET_KEY": passwords.key,
        "EASEL_PUBLIC_URL": f"http://127.0.0.1:{BALANCER_PORT}",
        "EASEL_DATA_DIR": str(machine.folder / "easel"),
        "PYTHONPATH": os.pathsep.join(filter(None, (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")))),
    }


UNAVAILABLE = """HTTP/1.1 503 Service Unavailable\r
Retry-After: 2\r
Cache-Control: no-store\r
Content-Type: text/plain\r
Content-Length: 39\r
\r
Easel is away for a moment. Try again.
"""


def haproxy_settings(machines: Sequence[Machine], unavailable: Path) -> str:
    """Return haproxy's settings: requests go to a server that is ready. Easel replies within 18 s, or not at all.

    Args:
        machines: The machines on which Easel runs.
        unavailable: A file with the reply if no server is ready, or the one that was asked has vanished.

    """
    servers = "\n".join(f"    server {one.name} {one.address}:{EASEL_PORT} check" for one in machines)
    errors = "\n".join(f"    errorfile {status} {unavailable}" for status in (502, 503, 504))
    return f"""
defaults
    mode http
    timeout connect 2s
    timeout client 60s
    timeout server 20s
    retries 2
    option redispatch
{errors}
frontend annotators
    bind 127.0.0.1:{BALANCER_PORT}
    default_backend easel
backend easel
    balance roundrobin
    option httpchk GET /ready
    default-server inter 1s fall 2 rise 1
{servers}
"""


def start_haproxy(machines: Sequence[Machine], folder: Path) -> subprocess.Popen[bytes]:
    """Start the load balancer on this computer."""
    settings, unavailable = folder / "haproxy.cfg", folder / "503.http"
    unavailable.write_bytes(UNAVAILABLE.encode())
    settings.write_text(haproxy_settings(machines, unavailable))
    with (folder / "haproxy.log").open("wb") as out:
        return subprocess.Popen(["haproxy", "-db", "-f", str(settings)], stdout=out, stderr=out)
