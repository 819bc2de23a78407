"""Invariants that hold under all faults, checked in the database with its own counting, and through the servers."""

import asyncio
import math
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import asyncpg

from tests.chaos.crowd import Caller, LaunchedCampaign
from tests.chaos.history import History, SentAnswer
from tests.servers import ENVIRONMENT, ROOT

# Items of a campaign that are judged and held more often than wanted, and annotators with more HITs than they may have.
# One statement sees one moment.
FIND_PASSED_CAPS = """
    WITH held AS (
        SELECT item, count(*) AS leases FROM hits h, unnest(h.items) AS item
        WHERE h.campaign_id = $1 AND h.closed_at IS NULL AND h.expires_at > clock_timestamp() GROUP BY 1
    )
    SELECT c.slug, format('item %s has %s judgments and %s open HITs of %s', p.subject, p.judgments,
                          coalesce(held.leases, 0), c.judgments_per_item) AS problem
    FROM campaigns c JOIN posteriors p ON p.campaign_id = c.id AND p.revision = c.revision AND p.criterion = 0
    LEFT JOIN held ON held.item = p.subject
    WHERE c.id = $1 AND p.campaign_id = $1 AND p.subject <> ALL(c.always_shown)
    AND p.judgments + coalesce(held.leases, 0) > c.judgments_per_item
    UNION ALL
    SELECT c.slug, format('annotator %s has %s HITs of %s', h.annotator_id, count(*), c.hits_per_annotator)
    FROM campaigns c JOIN hits h ON h.campaign_id = c.id
    WHERE c.id = $1 AND h.campaign_id = $1 AND c.hits_per_annotator IS NOT NULL
    AND (EXISTS (SELECT FROM responses r WHERE r.campaign_id = $1 AND r.hit_id = h.id)
         OR h.closed_at IS NULL AND h.expires_at > clock_timestamp())
    GROUP BY c.slug, h.annotator_id, c.hits_per_annotator HAVING count(*) > c.hits_per_annotator
    UNION ALL
    SELECT c.slug, format('assignment %s has %s open HITs', h.assignment_id, count(*))
    FROM campaigns c JOIN hits h ON h.campaign_id = c.id
    WHERE c.id = $1 AND h.campaign_id = $1 AND h.closed_at IS NULL GROUP BY c.slug, h.assignment_id HAVING count(*) > 1
"""
FIND_STORED_ANSWERS = "SELECT hit_id, replaces FROM responses WHERE hit_id = ANY($1)"
FIND_UNFINISHED_REVISIONS = """
    SELECT DISTINCT c.slug FROM campaigns c JOIN decisions d ON d.campaign_id = c.id AND d.seq > c.decided
    WHERE c.slug = ANY($1)
"""


@dataclass(frozen=True)
class StoredCampaign:
    """The record of a campaign, as it is in the database.

    Attributes:
        campaign: Its row.
        responses: By number.
        decisions: In their order.
        check_places: Places of checks in each HIT.
        posteriors: By the first criterion.
        numbers: Id of each annotator by their number in A1, A2, ....

    """

    campaign: Mapping[str, Any]
    responses: Mapping[int, Mapping[str, Any]]
    decisions: Sequence[Mapping[str, Any]]
    check_places: Mapping[int, set[int]]
    posteriors: Sequence[Mapping[str, Any]]
    numbers: Mapping[int, int]

    @classmethod
    async def load(cls, connection: asyncpg.Connection, slug: str) -> "StoredCampaign":
        (campaign,) = map(dict, await connection.fetch("SELECT * FROM campaigns WHERE slug = $1", slug))

        async def rows_of(table: str, order: str) -> list[Any]:
            return await connection.fetch(
                f"SELECT * FROM {table} WHERE campaign_id = $1 ORDER BY {order}", campaign["id"]
            )

        places: dict[int, set[int]] = defaultdict(set)
        for row in await rows_of("hit_checks", "hit_id"):
            places[row["hit_id"]].add(row["place"])
        posteriors = await rows_of("posteriors", "subject")
        return cls(
            campaign,
            {row["seq"]: row for row in await rows_of("responses", "seq")},
            await rows_of("decisions", "seq"),
            places,
            [row for row in posteriors if (row["revision"], row["criterion"]) == (campaign["revision"], 0)],
            {place: row["id"] for place, row in enumerate(await rows_of("annotators", "id"), start=1)},
        )

    def excluded(self) -> tuple[set[int], set[int]]:
        """Return the annotators and the answers that do not count, by the newest decision about each."""
        latest = {(row["annotator_id"], row["response_seq"]): row["kind"] for row in self.decisions}
        annotators = {who for (who, _), kind in latest.items() if who is not None and kind != "include"}
        answers = {seq for (_, seq), kind in latest.items() if seq is not None and kind != "include"}
        return annotators, answers

    def counting(self) -> list[Mapping[str, Any]]:
        """Return the responses that count; one that replaces another counts once that is withdrawn."""
        annotators, answers = self.excluded()
        withdrawn = {row["response_seq"] for row in self.decisions if row["kind"] == "withdraw"}
        return [
            row
            for seq, row in self.responses.items()
            if row["annotator_id"] not in annotators
            and seq not in answers
            and (row["replaces"] is None or row["replaces"] in withdrawn)
        ]

    def judgments(self) -> Counter[int]:
        """Return how many counting judgments each item has."""
        return Counter(
            item
            for row in self.counting()
            for item, value in zip(row["items"], row["values"], strict=False)
            if not math.isnan(value)  # an item that could not be judged
        )


async def watch_record(
    database_url: str, campaigns: Sequence[LaunchedCampaign], history: History, is_over: asyncio.Event
) -> None:
    """Look again and again, past the proxy, for passed caps and acknowledged answers that are not stored."""
    stored: set[tuple[int, int | None]] = set()
    while not is_over.is_set():
        try:
            connection = await asyncpg.connect(database_url, timeout=5)
            try:
                while not is_over.is_set():
                    slugs = [campaign.slug for campaign in campaigns if not campaign.restores]
                    for row in await connection.fetch("SELECT id FROM campaigns WHERE slug = ANY($1)", slugs):
                        found = await connection.fetch(FIND_PASSED_CAPS, row["id"], timeout=20)
                        history.note_violations([f"{passed['slug']}: {passed['problem']}" for passed in found])
                    awaited = [answer for answer in history.acknowledged_answers() if answer.key not in stored]
                    found = await connection.fetch(FIND_STORED_ANSWERS, [answer.hit for answer in awaited], timeout=20)
                    stored.update((row["hit_id"], row["replaces"]) for row in found)
                    history.note_violations(
                        f"{answer.slug}: the acknowledged answer to HIT {answer.hit} is not stored"
                        for answer in awaited
                        if answer.key not in stored
                    )
                    await asyncio.sleep(0.2)
            finally:
                connection.terminate()
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, TimeoutError):
            await asyncio.sleep(0.2)


def find_answer_violations(stored: StoredCampaign, answers: Sequence[SentAnswer]) -> Iterator[str]:
    """Yield acknowledged answers that are not stored as they were sent, and stored ones that nobody sent."""
    slug = stored.campaign["slug"]
    keys = Counter((row["hit_id"], row["replaces"]) for row in stored.responses.values())
    yield from (f"{slug}: HIT {hit} has {count} answers in one place" for (hit, _), count in keys.items() if count > 1)
    seqs: dict[tuple[int, int | None], int] = {
        (row["hit_id"], row["replaces"]): seq for seq, row in stored.responses.items()
    }
    for answer in answers:
        if answer.outcome == "acknowledged":
            yield from find_receipt_violations(stored, answer, seqs.get(answer.key))
    possible: dict[tuple[int, int | None], list[list[float]]] = defaultdict(list)
    for answer in answers:
        if answer.outcome != "refused":
            possible[answer.key].append(without_checks(stored, answer))
    for seq, row in stored.responses.items():
        sent = possible[row["hit_id"], row["replaces"]]
        if not any(have_same_values(row["values"], values) for values in sent):
            yield f"{slug}: answer {seq} to HIT {row['hit_id']} has {row['values']}, and sent was {sent}"


def find_receipt_violations(stored: StoredCampaign, answer: SentAnswer, seq: int | None) -> Iterator[str]:
    """Yield how an acknowledged answer differs from the stored one with this number."""
    where = f"{stored.campaign['slug']}: the acknowledged answer to HIT {answer.hit}"
    sent = without_checks(stored, answer)
    if seq is None:
        yield f"{where} is not stored"
    elif answer.seq is not None and answer.seq != seq:
        yield f"{where} has a receipt that says {answer.seq}, and {seq} is stored"
    elif answer.seq is not None and not answer.repeated and not have_same_values(stored.responses[seq]["values"], sent):
        yield f"{where} was {sent}, and {stored.responses[seq]['values']} is stored"


def without_checks(stored: StoredCampaign, answer: SentAnswer) -> list[float]:
    """Return the values of an answer that are no checks', which are stored elsewhere."""
    places = stored.check_places.get(answer.hit, set())
    return [value for place, value in enumerate(answer.values) if place not in places] if places else [*answer.values]


def have_same_values(stored: Sequence[float], sent: Sequence[float]) -> bool:
    pairs = zip(stored, sent, strict=False)
    return len(stored) == len(sent) and all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in pairs)


def find_count_violations(stored: StoredCampaign, *, restores: bool) -> Iterator[str]:
    """Yield items with more judgments than wanted, or with other numbers than the record has."""
    slug, judgments = stored.campaign["slug"], stored.judgments()
    for row in stored.posteriors:
        item = row["subject"]
        if row["judgments"] != judgments[item]:
            yield f"{slug}: item {item} has {judgments[item]} counting judgments, and {row['judgments']} are stored"
        wanted = stored.campaign["judgments_per_item"]
        if not restores and item not in stored.campaign["always_shown"] and judgments[item] > wanted:
            yield f"{slug}: item {item} has {judgments[item]} judgments of {wanted}"


def find_decision_violations(stored: StoredCampaign, history: History) -> Iterator[str]:
    """Yield acknowledged decisions that are not in force."""
    slug = stored.campaign["slug"]
    annotators, answers = stored.excluded()
    for (about, subject), decision in history.last_actions().items():
        if about != slug or decision.outcome != "acknowledged":
            continue
        kind, _, name = subject.partition("/")
        in_force = stored.numbers[int(name[1:])] in annotators if kind == "annotators" else int(name) in answers
        if in_force != (decision.action == "exclude"):
            yield f"{slug}: {decision.action} of {subject} was acknowledged and is not in force"


async def find_page_violations(stored: StoredCampaign, caller: Caller) -> list[str]:
    """Return where the API and the researcher's pages count otherwise than the record."""
    slug, counting = stored.campaign["slug"], stored.counting()
    drawn = sum(count for item, count in stored.judgments().items() if item not in stored.campaign["always_shown"])
    firsts = [row for row in stored.responses.values() if row["replaces"] is None]
    campaign = await caller.call_api("GET", f"/campaigns/{slug}")
    annotators = await caller.call_api("GET", f"/campaigns/{slug}/annotators?limit=1000")
    verified = await caller.call_api("GET", f"/campaigns/{slug}/verify")
    if campaign is None or annotators is None or verified is None:
        return [f"{slug}: the servers do not answer after the faults"]
    lines, found = annotators.json()["annotators"], []
    for what, said, is_so in (
        ("judgments taken", campaign.json()["judgments_taken"], drawn),
        ("HITs answered", sum(line["hits_answered"] for line in lines), len(firsts)),
        ("HITs counted", sum(line["hits_counted"] for line in lines), len({row["hit_id"] for row in counting})),
    ):
        if said != is_so:
            found.append(f"{slug}: {said} {what}, and the record has {is_so}")
    if not verified.json()["clean"]:
        found.append(f"{slug}: not verified: {verified.text[:400]}")
    return found


async def check_round(
    database_url: str, caller: Caller, campaigns: Sequence[LaunchedCampaign], history: History
) -> None:
    """Check all campaigns of a round once the faults are over; what is wrong goes into the history."""
    slugs = [campaign.slug for campaign in campaigns]
    connection = await asyncpg.connect(database_url, timeout=30)
    try:
        await wait_for_revisions(connection, slugs, history)
        for campaign in campaigns:
            stored = await StoredCampaign.load(connection, campaign.slug)
            answers = [answer for answer in history.answers if answer.slug == campaign.slug]
            history.note_violations(find_answer_violations(stored, answers))
            history.note_violations(find_count_violations(stored, restores=campaign.restores))
            history.note_violations(find_decision_violations(stored, history))
            history.note_violations(await find_page_violations(stored, caller))
    finally:
        await connection.close()


async def have_revisions_to_make(database_url: str, campaigns: Sequence[LaunchedCampaign]) -> bool:
    connection = await asyncpg.connect(database_url, timeout=30)
    try:
        slugs = [campaign.slug for campaign in campaigns]
        return bool(await connection.fetch(FIND_UNFINISHED_REVISIONS, slugs))
    finally:
        await connection.close()


async def wait_for_revisions(connection: asyncpg.Connection, slugs: Sequence[str], history: History) -> None:
    """Wait until every decision is part of the posteriors."""
    waiting = await connection.fetch(FIND_UNFINISHED_REVISIONS, slugs)
    for _ in range(300):
        if not waiting:
            return
        await asyncio.sleep(0.2)
        waiting = await connection.fetch(FIND_UNFINISHED_REVISIONS, slugs)
    history.note_violations([f"{row['slug']}: decisions are not applied" for row in waiting])


def verify_by_command(database_url: str, slug: str) -> str:
    """Return what `easel verify` finds in a campaign; empty if all is the same bit for bit."""
    command = [sys.executable, "-m", "app.cli", "verify", slug]
    environment = ENVIRONMENT | {"DATABASE_URL": database_url}
    result = subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)
    return "" if result.returncode == 0 else f"{slug}: {result.stdout}{result.stderr}"
