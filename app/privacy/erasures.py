"""Erase an annotator from a campaign, with a receipt.

1. One transaction stores the request, replaces ids and names, empties free text, and frees open HITs. The annotator
   gets no more HITs. That is all that `anonymise` does: the judgments stay, and the posteriors are untouched.
2. `remove` also stores a decision, so that no answer of the annotator counts from the next revision on.
3. After that revision, `remove` overwrites the values of the answers. Their numbers stay, so that a replay of the
   record still finds everything in its order.

Each step can be repeated, and `erasure_work` continues after an interruption. An erasure is finished once the file of
an import that began before it is gone, too: the import skips the person, and its last answer deletes the file.
"""

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args

from sqlalchemy import Row, TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.annotation.platforms.personal import PLATFORM as PERSONAL_PLATFORM
from app.database.audit_log import CURRENT_ACTOR, log_change
from app.designs.campaign import Campaign
from app.errors import Conflict, Invalid, NotFound, join_names, shorten_echo
from app.privacy.erasure_list import person_hash
from app.privacy.erasure_rule import ErasureRule
from app.privacy.inventory import PERSONAL_TABLES
from app.privacy.inventory_types import ERASED_REASON
from app.privacy.person_search import find_or_create_annotator_id_or_refuse
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.record.revisions import store_decision_and_return_number

RECEIPT_LETTERS, RECEIPT_LENGTH = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ", 8

INSERT_ERASURE = text("""
    INSERT INTO erasures (campaign_id, receipt, annotator_id, rule, requested_by, requested_at, due_at)
    VALUES (:campaign, :receipt, :annotator, :rule, :by, :now, :due)
    ON CONFLICT (campaign_id, annotator_id, rule) DO NOTHING RETURNING *
""")

# A withdrawal that the annotator could still take back becomes due at once.
HASTEN_OPEN_ERASURE = text("""
    UPDATE erasures SET due_at = least(due_at, :due)
    WHERE campaign_id = :campaign AND annotator_id = :annotator AND rule = :rule AND identifiers_erased_at IS NULL
    RETURNING *
""")

FIND_EARLIER_ERASURE = text("""
    SELECT * FROM erasures WHERE campaign_id = :campaign AND annotator_id = :annotator AND rule = ANY(:rules)
    ORDER BY id DESC LIMIT 1
""")

FIND_ERASURE_BY_RECEIPT = text("SELECT * FROM erasures WHERE campaign_id = :campaign AND receipt = upper(:receipt)")
LIST_ERASURES = text("SELECT * FROM erasures WHERE campaign_id = :campaign ORDER BY id DESC")
LOCK_ERASURE = text("SELECT * FROM erasures WHERE campaign_id = :campaign AND id = :id FOR NO KEY UPDATE")

# HITs are locked before their annotator, as everywhere.
LOCK_HITS_OF_ANNOTATOR = text("""
    SELECT id FROM hits WHERE campaign_id = :campaign AND annotator_id = :annotator ORDER BY id FOR NO KEY UPDATE
""")

# Unsent HITs are given up, so that a page that is still open can store nothing.
CLOSE_HITS_OF_ANNOTATOR = text("""
    UPDATE hits SET closed_at = :now, expires_at = least(expires_at, statement_timestamp())
    WHERE campaign_id = :campaign AND id = ANY(ARRAY(
        SELECT id FROM hits WHERE campaign_id = :campaign AND annotator_id = :annotator AND closed_at IS NULL
        ORDER BY id FOR NO KEY UPDATE))
""")

# This lock waits for every transaction that is storing a HIT or an answer of the annotator.
LOCK_PERSON = text("""
    SELECT a.platform, a.worker_id, a.pseudonym, n.name
    FROM annotators a JOIN named_annotators n ON n.campaign_id = a.campaign_id AND n.id = a.id
    WHERE a.campaign_id = :campaign AND a.id = :annotator FOR UPDATE OF a
""")

MARK_ANNOTATOR_AS_ERASED = text("""
    UPDATE annotators SET barred = 'erased', barred_reason = :reason, barred_by = :by, barred_at = :now
    WHERE campaign_id = :campaign AND id = :annotator
""")

NOTE_ERASED_IDENTIFIERS = text("""
    UPDATE erasures SET identifiers_erased_at = :now, counts = CAST(:counts AS jsonb),
        person_hashes = ARRAY(
            SELECT unnest(CAST(:hashes AS bytea[])) UNION SELECT unnest(e.person_hashes) FROM erasures e
            WHERE e.campaign_id = :campaign AND e.annotator_id = :annotator)
    WHERE campaign_id = :campaign AND id = :id
""")

# The last step of an erasure and the first transaction of an import wait for each other, so that the later one sees the
# other's rows.
LOCK_FILE_OF_IMPORT = text("SELECT pg_advisory_xact_lock(hashtext('campaign.import_file'), CAST(:campaign AS int))")
HAS_IMPORT_FROM_BEFORE = text("""
    SELECT EXISTS (
        SELECT FROM unfinished_imports f JOIN erasures e ON e.campaign_id = f.campaign_id
        WHERE e.campaign_id = :campaign AND e.id = :id AND f.started_at <= e.identifiers_erased_at)
""")
REOPEN_ERASURES_SINCE = text("""
    UPDATE erasures SET finished_at = NULL
    WHERE campaign_id = :campaign AND identifiers_erased_at >= :since AND finished_at IS NOT NULL
""")
NOTE_FINISHED_ERASURE = text("""
    UPDATE erasures SET finished_at = :now WHERE campaign_id = :campaign AND id = :id AND finished_at IS NULL
""")

COUNT_ANSWERS = text("SELECT count(*) FROM responses WHERE campaign_id = :campaign AND annotator_id = :annotator")


@dataclass(frozen=True)
class Erasure:
    """A request to erase an annotator, with its receipt.

    Attributes:
        campaign_id: Row id of the campaign.
        id: Row id of the request.
        receipt: Number of the receipt.
        annotator_id: Row id of the annotator.
        rule: `anonymise` or `remove`.
        requested_by: Login name of the researcher, or who else asked.
        requested_at: When.
        due_at: Until then, the annotator can take the request back.
        identifiers_erased_at: When ids, names and free text were erased; None if they are not yet.
        finished_at: When all was done; None if it is not yet.
        counts: Numbers of changed rows by table, and of `answers`.

    """

    campaign_id: int
    id: int
    receipt: str
    annotator_id: int
    rule: ErasureRule
    requested_by: str
    requested_at: datetime
    due_at: datetime
    identifiers_erased_at: datetime | None
    finished_at: datetime | None
    counts: Mapping[str, int]

    @classmethod
    def from_erasure_row(cls, row: Row[Any]) -> "Erasure":
        return cls(**{name: getattr(row, name) for name in cls.__annotations__})


def iterate_table_names_and_erasing_statements(*, is_removal_of_answers: bool) -> Iterator[tuple[str, TextClause]]:
    """Yield the name of each table and a statement that erases there; the inventory says what.

    Args:
        is_removal_of_answers: True for the last step of `remove`; False for what both rules do first.

    """
    for table in PERSONAL_TABLES:
        deleted = table.deleted_by_remove if is_removal_of_answers else table.deleted_by_anonymise
        if deleted:
            yield table.name, text(f"DELETE FROM {table.name} WHERE {table.rows} AND {deleted}")
        values = {
            name: column.removed if is_removal_of_answers else column.anonymised
            for column in table.columns
            for name in column.names
        }
        changes = ", ".join(f'"{name}" = {value}' for name, value in values.items() if value)
        if changes:
            yield table.name, text(f"UPDATE {table.name} SET {changes} WHERE {table.rows}")


FIRST_STATEMENTS = tuple(iterate_table_names_and_erasing_statements(is_removal_of_answers=False))
ANSWER_REMOVAL_STATEMENTS = tuple(iterate_table_names_and_erasing_statements(is_removal_of_answers=True))


async def erase_person_and_return_erasure(
    engine: AsyncEngine, slug: str, annotator: str, erasure_rule: str, *, now: datetime, requested_by: str = ""
) -> Erasure:
    """Erase the ids, names and free text of an annotator.

    The answers follow with `erasure_work.ErasureWork`, if the rule is `remove`.

    Args:
        engine: The database.
        slug: The campaign.
        annotator: Name on pages, such as A7, or pseudonym in exports; or L3 or P7, for people who never came.
        erasure_rule: `anonymise` or `remove`.
        now: The present time.
        requested_by: Who asked for it; by default the person behind the request or command.

    Raises:
        Invalid: `rule_unknown`.
        NotFound: `campaign_not_found`, `annotator_not_found`.
        Conflict: `already_erased`, `already_withdrawn`.

    """
    if erasure_rule not in get_args(ErasureRule):
        raise Invalid(f"The rule must be one of {join_names(get_args(ErasureRule))}.", code="rule_unknown")
    async with engine.begin() as connection:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        annotator_id = await find_or_create_annotator_id_or_refuse(connection, campaign, annotator, now=now)
        erasure = await store_erasure_request_or_refuse(
            connection,
            campaign,
            annotator_id,
            erasure_rule,
            requested_by=requested_by or CURRENT_ACTOR.get().name,
            now=now,
            due_at=now,
        )
        return await erase_identifiers_and_return_erasure(connection, campaign, erasure, now=now)


async def store_erasure_request_or_refuse(
    connection: AsyncConnection,
    campaign: Campaign,
    annotator_id: int,
    erasure_rule: str,
    *,
    requested_by: str,
    now: datetime,
    due_at: datetime,
    receipt_number: str | None = None,
) -> Erasure:
    """Store a request to erase an annotator, or let their open withdrawal be due now. `receipt_number` is the number
    of the request, if it has one already.

    Requests about the same annotator wait for each other. The locks are taken in the order of answers: HITs first.

    Raises:
        Conflict: `already_erased`, also if answers are removed already, so that nothing is left to anonymise;
            `already_withdrawn`, if the annotator had asked for removal, which is not done yet.

    """
    rules = ["remove"] if erasure_rule == "remove" else ["anonymise", "remove"]
    key = {"campaign": campaign.id, "annotator": annotator_id}
    await connection.execute(LOCK_HITS_OF_ANNOTATOR, key)
    await connection.execute(LOCK_PERSON, key)
    if due_at <= now:
        hastened = (
            await connection.execute(HASTEN_OPEN_ERASURE, {**key, "rule": erasure_rule, "due": due_at})
        ).one_or_none()
        if hastened is not None:
            return Erasure.from_erasure_row(hastened)
    earlier = (await connection.execute(FIND_EARLIER_ERASURE, {**key, "rules": rules})).one_or_none()
    if earlier is None:
        parameters = {"rule": erasure_rule, "by": requested_by, "now": now, "due": due_at}
        number = receipt_number or new_receipt_number()
        row = (await connection.execute(INSERT_ERASURE, {**key, **parameters, "receipt": number})).one_or_none()
        if row is not None:
            return Erasure.from_erasure_row(row)
        earlier = (await connection.execute(FIND_EARLIER_ERASURE, {**key, "rules": rules})).one()
    if earlier.identifiers_erased_at is None:
        raise Conflict(
            f"This person withdrew, and their answers will be removed: receipt {earlier.receipt}. To erase them now, "
            "choose to remove the answers. Nothing was changed.",
            code="already_withdrawn",
            receipt=earlier.receipt,
        )
    raise Conflict(
        f"This person was erased before: receipt {earlier.receipt}. Nothing was changed.",
        code="already_erased",
        receipt=earlier.receipt,
    )


def new_receipt_number() -> str:
    return "E-" + "".join(secrets.choice(RECEIPT_LETTERS) for _ in range(RECEIPT_LENGTH))


async def erase_identifiers_and_return_erasure(
    connection: AsyncConnection,
    campaign: Campaign,
    erasure: Erasure,
    *,
    now: datetime,
    known_hashes: Sequence[bytes] = (),
) -> Erasure:
    """Erase ids, names and free text, free open HITs, and store the decision if answers are to be removed.

    All of it is one transaction. A second call for the same erasure changes nothing. `known_hashes` are kept with those
    of the present ids and of earlier erasures.
    """
    key = {"campaign": campaign.id, "annotator": erasure.annotator_id}
    locked = (await connection.execute(LOCK_ERASURE, {"campaign": campaign.id, "id": erasure.id})).one_or_none()
    if locked is None or locked.identifiers_erased_at is not None:
        return erasure if locked is None else Erasure.from_erasure_row(locked)
    person = await lock_person_closing_hits_and_return_row(connection, key, now=now)
    hashes = [
        *known_hashes,
        person_hash(campaign.link_key, person.platform, person.worker_id),
        person_hash(campaign.link_key, "", person.pseudonym),
    ]
    marked = {"reason": ERASED_REASON, "by": erasure.requested_by, "now": now}
    await connection.execute(MARK_ANNOTATOR_AS_ERASED, {**key, **marked})
    if erasure.rule == "remove" and campaign.status != "draft":
        await store_decision_and_return_number(
            connection,
            campaign,
            "erased",
            "annotator",
            erasure.annotator_id,
            reason=ERASED_REASON,
            actor=erasure.requested_by,
            now=now,
        )
    answers: int = (await connection.execute(COUNT_ANSWERS, key)).scalar_one()
    counts = {"answers": answers} | await erase_and_return_nonzero_counts_by_table(
        connection, FIRST_STATEMENTS, key, person.name
    )
    note = {"id": erasure.id, "now": now, "counts": json.dumps(counts), "hashes": hashes}
    await connection.execute(NOTE_ERASED_IDENTIFIERS, {**key, **note})
    await log_change(
        connection,
        "people.erased",
        campaign,
        about=erasure.receipt,
        new_values={"rule": erasure.rule, "answers": answers},
    )
    return await load_erasure_or_refuse(connection, campaign, erasure.receipt)


async def remove_values_of_answers(connection: AsyncConnection, erasure: Erasure, *, now: datetime) -> None:
    """Do the last step of an erasure, unless it is done. The present revision must include the decision of `remove`.

    If the file of an import from before is still stored, the erasure stays open, and the step is repeated.
    """
    key = {"campaign": erasure.campaign_id, "annotator": erasure.annotator_id}
    await connection.execute(LOCK_FILE_OF_IMPORT, {"campaign": erasure.campaign_id})
    locked = (await connection.execute(LOCK_ERASURE, {"campaign": erasure.campaign_id, "id": erasure.id})).one_or_none()
    if locked is None or locked.finished_at is not None:
        return
    # Also erase HITs and answers that were stored while the first step ran. The ids are erased already.
    person = await lock_person_closing_hits_and_return_row(connection, key, now=now)
    statements_of_rows = [(table, statement) for table, statement in FIRST_STATEMENTS if table != "annotators"]
    await erase_and_return_nonzero_counts_by_table(connection, statements_of_rows, key, person.name)
    if erasure.rule == "remove":
        await erase_and_return_nonzero_counts_by_table(connection, ANSWER_REMOVAL_STATEMENTS, key, person.name)
    erasure_key = {"campaign": erasure.campaign_id, "id": erasure.id}
    if not (await connection.execute(HAS_IMPORT_FROM_BEFORE, erasure_key)).scalar_one():
        await connection.execute(NOTE_FINISHED_ERASURE, erasure_key | {"now": now})


async def reopen_erasures_since(connection: AsyncConnection, campaign_id: int, *, since: datetime) -> None:
    """Let erasures wait for the file of an import that began before them and is stored only now.

    Its caller has stored the file in this transaction.
    """
    await connection.execute(LOCK_FILE_OF_IMPORT, {"campaign": campaign_id})
    await connection.execute(REOPEN_ERASURES_SINCE, {"campaign": campaign_id, "since": since})


async def lock_person_closing_hits_and_return_row(
    connection: AsyncConnection, key: Mapping[str, Any], *, now: datetime
) -> Row[Any]:
    """Lock an annotator and all of their HITs, close the open ones, and return the ids and names of the annotator."""
    await connection.execute(LOCK_HITS_OF_ANNOTATOR, key)
    person = (await connection.execute(LOCK_PERSON, key)).one()
    await connection.execute(CLOSE_HITS_OF_ANNOTATOR, {**key, "now": now})
    return person


async def erase_and_return_nonzero_counts_by_table(
    connection: AsyncConnection, statements: Sequence[tuple[str, TextClause]], key: Mapping[str, Any], name: str
) -> dict[str, int]:
    """Run statements about an annotator, whose name on pages is `name`; return the number of changed rows by table."""
    counts: dict[str, int] = {}
    known = {**key, "name": name, "personal_platform": PERSONAL_PLATFORM.name}
    for table, statement in statements:
        parameters = {parameter: known[parameter] for parameter in statement.compile().params}
        counts[table] = counts.get(table, 0) + (await connection.execute(statement, parameters)).rowcount
    return {table: count for table, count in counts.items() if count}


async def load_erasure_or_refuse(connection: AsyncConnection, campaign: Campaign, receipt_number: str) -> Erasure:
    """Return an erasure by the number of its receipt. Raises `NotFound` (`receipt_not_found`)."""
    parameters = {"campaign": campaign.id, "receipt": receipt_number}
    row = (await connection.execute(FIND_ERASURE_BY_RECEIPT, parameters)).one_or_none()
    if row is None:
        raise NotFound(f"“{campaign.name}” has no receipt {shorten_echo(receipt_number)}.", code="receipt_not_found")
    return Erasure.from_erasure_row(row)


async def list_erasures(connection: AsyncConnection, campaign: Campaign) -> Sequence[Erasure]:
    """Return the erasures of a campaign, newest first."""
    rows = await connection.execute(LIST_ERASURES, {"campaign": campaign.id})
    return [Erasure.from_erasure_row(row) for row in rows]
