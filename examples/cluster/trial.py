"""A trial of the cluster: annotators work while machines fail; then each acknowledged answer is looked up."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import asyncpg
import httpx

from app.accounts.tokens import issue_token_or_refuse
from app.accounts.users import find_oldest_user_or_create_admin
from app.database.session import create_engine
from app.settings import Settings
from examples.cluster.cluster import Cluster

ITEMS, ITEMS_PER_HIT = 400, 5
CALM_SECONDS = 5  # of work before each fault
BACK_SECONDS = 15  # of work that shows that the service is back
LIMIT_SECONDS = 120  # for the service to come back at all
HANG_SECONDS = 60
CLIENT_PATIENCE_SECONDS = 25
MAX_SILENCE_SECONDS = 30

Fault = Callable[[Cluster], Awaitable[Callable[[], None]]]


def nothing_to_repair() -> None:
    """Do nothing: the cluster repairs this fault by itself."""


async def switch_over(cluster: Cluster) -> Callable[[], None]:
    await cluster.switch_over()
    return nothing_to_repair


async def kill_postgres(cluster: Cluster) -> Callable[[], None]:
    (await cluster.find_primary()).send(signal.SIGKILL, "postgres")
    return nothing_to_repair


async def kill_machine(cluster: Cluster) -> Callable[[], None]:
    machine = await cluster.find_primary()
    machine.kill()
    return machine.start


async def cut_power(cluster: Cluster) -> Callable[[], None]:
    machine = await cluster.find_primary()
    machine.cut_power()
    return machine.restore_power


async def hang(cluster: Cluster) -> Callable[[], None]:
    machine = await cluster.find_primary()
    machine.send(signal.SIGSTOP)
    asyncio.get_running_loop().call_later(HANG_SECONDS, machine.send, signal.SIGCONT)
    return nothing_to_repair


async def kill_easel(cluster: Cluster) -> Callable[[], None]:
    machine = cluster.machines[0]
    machine.send(signal.SIGKILL, "app.cli")
    return machine.start


async def restart_easel(cluster: Cluster) -> Callable[[], None]:
    machine = cluster.machines[1]
    machine.send(signal.SIGTERM, "app.cli")
    return machine.start


FAULTS: dict[str, Fault] = {
    "restart-easel": restart_easel,
    "kill-easel": kill_easel,
    "switchover": switch_over,
    "kill-postgres": kill_postgres,
    "kill-machine": kill_machine,
    "power-off": cut_power,
    "hang": hang,
}


@dataclass
class Outcome:
    """What annotators saw of a fault.

    Attributes:
        fault: Its name.
        silence: The longest time without an acknowledged answer, in seconds.
        acknowledged: Answers acknowledged from shortly before the fault until the service was back.
        statuses: Replies by their status; 0 if there was none.

    """

    fault: str
    silence: float
    acknowledged: int
    statuses: Counter[int]


@dataclass
class Trial:
    """What a trial found.

    Attributes:
        outcomes: Of each fault.
        acknowledged: How many answers were acknowledged in all.
        problems: Answers lost or stored twice, other replies than 200 and 503, and posteriors that differ.

    """

    outcomes: list[Outcome]
    acknowledged: int
    problems: list[str]

    @property
    def silences(self) -> list[str]:
        """Faults after which no answer could be stored for longer than 30 s."""
        return [one.fault for one in self.outcomes if one.silence > MAX_SILENCE_SECONDS]


@dataclass
class Work:
    """Answers of simulated annotators.

    Attributes:
        slug: The campaign's.
        headers: Of each request.
        acknowledged: HIT of each answer by its number in the record.
        times: When each answer was acknowledged, in seconds of a clock that only goes forward.
        statuses: Replies by their status; 0 if there was none.
        problems: Replies that must not happen.

    """

    base_url: str
    slug: str
    headers: dict[str, str]
    acknowledged: dict[int, int] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    async def answer_until_cancelled(self, name: str) -> None:
        """Answer one HIT after the other as one annotator, sending again what got no final reply."""
        async with httpx.AsyncClient(timeout=CLIENT_PATIENCE_SECONDS, headers=self.headers) as client:
            while True:
                reply = await self.send_until_final(client, f"/campaigns/{self.slug}/hits", {"annotator": name})
                if (hit := reply["hit"]) is None:
                    self.problems.append(f"{name} gets no HIT: {reply['reason']}")
                    return
                values = {item["id"]: 50 for item in hit["items"]}
                receipt = await self.send_until_final(
                    client, f"/hits/{hit['id']}/response", {"annotator": name, "values": values}
                )
                self.acknowledged[receipt["seq"]] = hit["id"]
                self.times.append(time.monotonic())

    async def send_until_final(self, client: httpx.AsyncClient, path: str, body: object) -> dict[str, Any]:
        while True:
            try:
                reply = await client.post(f"{self.base_url}/api/v1{path}", json=body)
            except httpx.HTTPError:
                self.statuses[0] += 1
                await asyncio.sleep(0.5)
                continue
            self.statuses[reply.status_code] += 1
            if reply.status_code == 200:
                return dict[str, Any](reply.json())
            if reply.status_code != 503:
                self.problems.append(f"{path} gave {reply.status_code}: {reply.text[:200]}")
            elif "retry-after" not in reply.headers:
                self.problems.append(f"{path} gave 503 without a time to try again")
            await asyncio.sleep(0.5)


async def try_faults(cluster: Cluster, faults: list[str], annotators: int) -> Trial:
    """Let annotators work through faults, one after the other."""
    work = await launch_campaign(cluster)
    working = [asyncio.create_task(work.answer_until_cancelled(f"p{number}")) for number in range(annotators)]
    try:
        outcomes = [await try_fault(cluster, work, fault) for fault in faults]
    finally:
        for task in working:
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)
    work.problems += await find_problems_of_record(cluster, work)
    return Trial(outcomes, len(work.acknowledged), work.problems)


async def try_fault(cluster: Cluster, work: Work, fault: str) -> Outcome:
    """Make one fault, and wait until answers are stored again; then repair it."""
    await asyncio.sleep(CALM_SECONDS)
    before, statuses = len(work.times), work.statuses.copy()
    began = time.monotonic()
    repair = await FAULTS[fault](cluster)
    while (now := time.monotonic()) < began + LIMIT_SECONDS:
        await asyncio.sleep(1)
        lately = [one for one in work.times[before:] if one > now - BACK_SECONDS]
        is_back = now > began + BACK_SECONDS and longest_gap([now - BACK_SECONDS, *lately, now]) < 2
        if is_back and (fault != "hang" or now > began + HANG_SECONDS + BACK_SECONDS):
            break
    silence = longest_gap([began, *work.times[before:], time.monotonic()])
    outcome = Outcome(fault, silence, len(work.times) - before, work.statuses - statuses)
    repair()
    await cluster.wait_until_whole()
    return outcome


def longest_gap(times: list[float]) -> float:
    """Return the longest time between two of the times, which are in order."""
    return max((later - earlier for earlier, later in pairwise(times)), default=0.0)


async def launch_campaign(cluster: Cluster) -> Work:
    """Create a campaign whose items may be judged without end, and launch it."""
    url = Settings(database_url=cluster.database_url).database_url
    assert url is not None
    engine = create_engine(url, pool_size=1)
    now = datetime.now(UTC)
    async with engine.begin() as connection:
        owner = await find_oldest_user_or_create_admin(connection, now=now)
        token = await issue_token_or_refuse(connection, owner.id, "trial", now=now)
    await engine.dispose()
    settings = {"name": "Trial", "question": "How good?", "judgments_per_item": 1000, "items_per_hit": ITEMS_PER_HIT}
    settings["repeat_items"] = True  # an annotator answers more tasks than there are items
    table = "id,text\n" + "".join(f"v{number},text {number}\n" for number in range(ITEMS))
    headers = {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=f"{cluster.base_url}/api/v1", headers=headers, timeout=30) as client:

        async def post(path: str, **content: Any) -> dict[str, Any]:
            reply = await client.post(path, **content)
            if not reply.is_success:
                raise RuntimeError(f"{path} gave {reply.status_code}: {reply.text}")
            return dict[str, Any](reply.json())

        slug = (await post("/campaigns", json=settings))["slug"]
        await post(f"/campaigns/{slug}/items", content=table, headers={"content-type": "text/csv"})
        await post(f"/campaigns/{slug}/transitions", json={"action": "launch"})
    return Work(cluster.base_url, slug, headers)


async def find_problems_of_record(cluster: Cluster, work: Work) -> list[str]:
    """Return what is wrong with the record: answers that are lost, or stored twice, and posteriors that differ."""
    connection = await asyncpg.connect(f"{cluster.database_url}?target_session_attrs=read-write", timeout=10)
    stored = await connection.fetch(
        "SELECT seq, hit_id FROM responses JOIN campaigns ON campaigns.id = campaign_id WHERE slug = $1", work.slug
    )
    await connection.close()
    hits = {row["seq"]: row["hit_id"] for row in stored}
    problems = [
        f"answer {seq} to HIT {hit} was acknowledged, and is lost"
        for seq, hit in work.acknowledged.items()
        if hits.get(seq) != hit
    ]
    problems += [f"HIT {hit} has {count} answers" for hit, count in Counter(hits.values()).items() if count > 1]
    verified = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-m", "app.cli", "verify", work.slug], check=False, capture_output=True,
        text=True, env={**os.environ, "DATABASE_URL": cluster.database_url},
    )  # fmt: skip
    if verified.returncode:
        problems.append(f"easel verify: {verified.stdout}{verified.stderr}")
    return problems


def report_lines(trial: Trial) -> list[str]:
    """Return what the trial found, as a table in Markdown and a line for each problem."""
    return [
        "| fault | longest silence, s | answers | other replies |",
        "|---|---|---|---|",
        *(
            f"| {one.fault} | {one.silence:.1f} | {one.acknowledged} | {other_replies(one.statuses)} |"
            for one in trial.outcomes
        ),
        f"{trial.acknowledged} acknowledged answers, {len(trial.problems)} problems",
        *(f"{count} × {problem}" for problem, count in Counter(trial.problems).most_common(20)),
        *(f"{fault}: no answer could be stored for more than {MAX_SILENCE_SECONDS} s" for fault in trial.silences),
    ]


def other_replies(statuses: Counter[int]) -> str:
    """Return how often there was another reply than 200, or a closed connection."""
    counts = [f"{count} × {status or 'closed'}" for status, count in sorted(statuses.items()) if status != 200]
    return ", ".join(counts) or "–"
