"""The example of a cluster: what its services are told, and that no answer is lost when a machine loses power."""

import shutil
import subprocess
from pathlib import Path

import pytest

from app.settings import Settings
from examples.cluster.cluster import running_cluster
from examples.cluster.machines import Machine, find_missing_requirements
from examples.cluster.services import (
    Secrets,
    easel_environment,
    haproxy_settings,
    patroni_settings,
)
from examples.cluster.trial import try_faults

MISSING = find_missing_requirements()
MACHINES = [Machine(number, Path(f"/tmp/machine{number}")) for number in (1, 2, 3)]


def test_a_commit_waits_for_a_standby_and_a_lost_leader_is_replaced_within_20_seconds():
    settings = patroni_settings(MACHINES[0], MACHINES, Secrets())
    cluster = settings["bootstrap"]["dcs"]
    assert cluster["synchronous_mode"] is True
    assert cluster["ttl"] == 20
    assert cluster["loop_wait"] + 2 * cluster["retry_timeout"] <= cluster["ttl"]  # what Patroni asks for


def test_servers_share_the_key_and_name_every_postgresql():
    passwords = Secrets()
    environments = [easel_environment(machine, MACHINES, passwords) for machine in MACHINES]
    assert len({environment["DATABASE_URL"] for environment in environments}) == 1
    assert len({environment["EASEL_SECRET_KEY"] for environment in environments}) == 1
    read = Settings(database_url=environments[0]["DATABASE_URL"])
    assert all(machine.address in str(read.database_url) for machine in MACHINES)


@pytest.mark.skipif(not shutil.which("haproxy"), reason="haproxy is not installed")
def test_haproxy_accepts_its_settings(tmp_path):
    (tmp_path / "503.http").write_text("HTTP/1.1 503 Service Unavailable\r\n\r\n")
    (tmp_path / "haproxy.cfg").write_text(haproxy_settings(MACHINES, tmp_path / "503.http"))
    checked = subprocess.run(["haproxy", "-c", "-f", tmp_path / "haproxy.cfg"], check=False, capture_output=True)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=f"a cluster needs what is missing here: {'; '.join(MISSING)}")
async def test_no_acknowledged_answer_is_lost_when_the_primary_loses_power():
    async with running_cluster() as cluster:
        trial = await try_faults(cluster, ["power-off"], annotators=4)
    assert trial.problems == []
    assert trial.acknowledged > 50
