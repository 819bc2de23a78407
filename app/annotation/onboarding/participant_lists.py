"""Allow list, block list and groups of a campaign: changing, counting and listing the people on them.

`participant_check` says what the two lists do, and `hits.assigned_items` what groups do. All hold ids of platforms,
names of people with personal links, and names that programs use.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Any, BinaryIO, NamedTuple

from pydantic import StringConstraints
from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.onboarding.list_action import ListAction
from app.annotation.onboarding.people_tables import reword_refusals_for_people
from app.annotation.platforms.participant_check import LISTED_PERSON_HASH
from app.annotation.platforms.platform import MAX_PLATFORM_ID_CHARACTERS
from app.database.audit_log import log_change
from app.designs.campaign import Campaign
from app.errors import Conflict, Invalid, TooLarge, pluralize, shorten_echo
from app.uploads import UNICODE_OPTIONS, ReadOptions, format_cell, read_table

LIST_NAME_PATTERN = "[a-z][a-z0-9_-]{0,39}"
ParticipantList = Annotated[str, StringConstraints(pattern=f"^{LIST_NAME_PATTERN}$")]  # allow, block, or a group
MAX_GROUPS = 100
MAX_LISTED_PEOPLE = 50_000
USUAL_ID_COLUMNS = ("participant id", "participant_id", "worker id", "worker_id", "workerid", "id", "name", "mail")

GIVEN_PEOPLE = f"""
    SELECT {LISTED_PERSON_HASH.format(person_id="given.id")} AS person_hash, given.id
    FROM campaigns c, unnest(CAST(:people AS text[])) AS given (id) WHERE c.id = :campaign
"""

LOCK_CAMPAIGN = text("SELECT 1 FROM campaigns WHERE id = :campaign FOR NO KEY UPDATE")

# A block whose id was erased gets its id back when a researcher lists the person again.
ADD_PEOPLE = text(f"""
    INSERT INTO participant_lists AS l (campaign_id, list, person_hash, worker_id, added_at)
    SELECT :campaign, CAST(:list AS text), given.person_hash, given.id, CAST(:now AS timestamptz)
    FROM ({GIVEN_PEOPLE}) AS given
    ON CONFLICT (campaign_id, list, person_hash) DO UPDATE SET worker_id = excluded.worker_id
    WHERE l.worker_id IS NULL
    RETURNING 1
""")

FIND_HASHES_OF_PEOPLE = text(f"SELECT given.person_hash FROM ({GIVEN_PEOPLE}) AS given")

REMOVE_PEOPLE = text("""
    DELETE FROM participant_lists
    WHERE campaign_id = :campaign AND list = :list AND person_hash = ANY(CAST(:hashes AS bytea[]))
    RETURNING 1
""")

# Blocks of erased people stay: no file has their ids.
REMOVE_OTHER_PEOPLE = text("""
    DELETE FROM participant_lists
    WHERE campaign_id = :campaign AND list = :list AND (worker_id IS NOT NULL OR list <> 'block')
      AND person_hash <> ALL(CAST(:hashes AS bytea[]))
    RETURNING 1
""")

COUNT_LISTED_PEOPLE = text("""
    SELECT list, count(*) AS people, count(*) FILTER (WHERE worker_id IS NULL) AS erased FROM participant_lists
    WHERE campaign_id = :campaign GROUP BY list ORDER BY list
""")

LIST_PARTICIPANTS = text("""
    SELECT worker_id FROM participant_lists WHERE campaign_id = :campaign AND list = :list AND worker_id IS NOT NULL
    ORDER BY worker_id LIMIT :limit OFFSET :offset
""")


class ListedPeopleCount(NamedTuple):
    """Number of people on a list. The ids of `erased` ones are gone: their blocks hold by a hash, and an allow list
    stays closed to others.
    """

    people: int = 0
    erased: int = 0

    @property
    def shown(self) -> int:
        """Return the number of people whose ids are known."""
        return self.people - self.erased


async def change_participant_list_and_count_changes(
    connection: AsyncConnection,
    campaign: Campaign,
    list_name: str,
    person_ids: Iterable[str],
    action: ListAction,
    *,
    now: datetime,
    may_open_to_everyone: bool = False,
) -> int:
    """Add people to a list, remove them, or replace the list with them; return how many entries changed.

    Without `may_open_to_everyone`, the allow list keeps its last person.

    Raises:
        Invalid: `person_id_wrong`, `list_name_wrong`.
        TooLarge: `too_many_people`.
        Conflict: `is_a_rehearsal`, `opens_to_everyone`.

    """
    if re.fullmatch(LIST_NAME_PATTERN, list_name) is None:
        raise Invalid(
            f"“{shorten_echo(list_name)}” is not a list: use allow, block or a group, whose name has up to 40 "
            "lowercase letters, digits, _ and -, and begins with a letter. Nothing was changed.",
            code="list_name_wrong",
        )
    if campaign.rehearsal_of is not None:
        raise Conflict(f"“{campaign.name}” is a rehearsal. Its annotators are simulated.", code="is_a_rehearsal")
    ids = [person for person in dict.fromkeys(person.strip() for person in person_ids) if person]
    for person in ids:
        if len(person) > MAX_PLATFORM_ID_CHARACTERS or not person.isprintable():
            raise Invalid(
                f"“{shorten_echo(person)}” is not an id: use at most {MAX_PLATFORM_ID_CHARACTERS} visible characters, "
                "and one id per line. Nothing was changed.",
                code="person_id_wrong",
            )
    await connection.execute(LOCK_CAMPAIGN, {"campaign": campaign.id})
    key = {"campaign": campaign.id, "list": list_name, "people": ids}
    changed = 0
    if action != "add":
        given = {"campaign": campaign.id, "people": key["people"]}
        hashes = list(await connection.scalars(FIND_HASHES_OF_PEOPLE, given))
        changed += await execute_and_count_changed_rows(
            connection,
            REMOVE_PEOPLE if action == "remove" else REMOVE_OTHER_PEOPLE,
            {"campaign": campaign.id, "list": list_name, "hashes": hashes},
        )
    if action != "remove":
        changed += await execute_and_count_changed_rows(connection, ADD_PEOPLE, {**key, "now": now})
    counts = await count_listed_people_by_list(connection, campaign.id)
    if counts.get(list_name, ListedPeopleCount()).people > MAX_LISTED_PEOPLE or len(counts) > MAX_GROUPS + 2:
        raise TooLarge(
            f"A list has at most {pluralize(MAX_LISTED_PEOPLE, 'id')}, and a campaign at most {MAX_GROUPS} groups. "
            "Nothing was changed.",
            code="too_many_people",
        )
    if changed and list_name == "allow" and not counts["allow"].people and not may_open_to_everyone:
        raise Conflict(
            f"An empty allow list lets everyone take part in “{campaign.name}”. Confirm that you want this. Nothing "
            "was changed.",
            code="opens_to_everyone",
        )
    if changed:
        await log_change(connection, "people.listed", campaign, about=list_name, new_values={action: changed})
    return changed


async def execute_and_count_changed_rows(
    connection: AsyncConnection, statement: TextClause, parameters: dict[str, Any]
) -> int:
    return len((await connection.execute(statement, parameters)).all())


async def count_listed_people_by_list(connection: AsyncConnection, campaign_id: int) -> dict[str, ListedPeopleCount]:
    """Return the number of people on the allow list, the block list, and each group."""
    rows = (await connection.execute(COUNT_LISTED_PEOPLE, {"campaign": campaign_id})).all()
    counts: dict[str, ListedPeopleCount] = {"allow": ListedPeopleCount(), "block": ListedPeopleCount()}
    return counts | {row.list: ListedPeopleCount(row.people, row.erased) for row in rows}


async def list_participant_ids(
    connection: AsyncConnection,
    campaign_id: int,
    list_name: str,
    *,
    limit: int = MAX_LISTED_PEOPLE,
    offset: int = 0,
) -> Sequence[str]:
    """Return the ids on a list in their order, without those of erased people."""
    key = {"campaign": campaign_id, "list": list_name, "limit": limit, "offset": offset}
    return (await connection.scalars(LIST_PARTICIPANTS, key)).all()


@reword_refusals_for_people()
def read_person_ids(
    file: BinaryIO, file_name: str, *, max_mb: int, read_options: ReadOptions = UNICODE_OPTIONS
) -> list[str]:
    """Return the ids in a table, from a usual column of ids or else the first one.

    The file may also be only ids, one per line: the first line is read as an id unless it names a usual column. Raises
    what `read_table` raises.
    """
    upload = read_table(file, file_name, max_mb=max_mb, read_options=read_options)
    columns_by_name = {name.casefold(): name for name in reversed(upload.columns)}
    usual_column = next((columns_by_name[name] for name in USUAL_ID_COLUMNS if name in columns_by_name), None)
    column = usual_column or upload.columns[0]
    ids = [format_cell(record.values.get(column)).strip() for record in upload.rows]
    return ids if usual_column or len(upload.columns) > 1 else [column, *ids]
