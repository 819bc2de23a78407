"""Check whether a person may take part in a campaign, before the first assignment of that person is made.

Four settings decide: the block list and the allow list of the campaign, and the other campaigns that people must or
must not have taken part in. A person who is in the campaign already stays: a change of these stops no work.

A person whose data were erased from the campaign cannot take part again. The erasure's own hash of their former id
shows it; nothing else about them is stored.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import text

from app.annotation.platforms.personal import PLATFORM as PERSONAL_PLATFORM
from app.annotation.platforms.platform import Arrival
from app.annotation.platforms.programs import API_PLATFORM, SIMULATION_PLATFORM
from app.annotation.platforms.same_person import IS_SAME_PERSON, SAME_PERSON_PARAMETERS
from app.database.session import (
    Driver,
    Record,
    fetch_first_column,
    fetch_first_row_or_none,
    fetch_first_value_or_none,
)
from app.errors import Forbidden

# SQL: hash of a person's id on the lists of campaign c. Its key keeps the hashes of two campaigns from being joined.
LISTED_PERSON_HASH = "sha256(convert_to(c.link_key || E'\\nlisted\\n' || {person_id}, 'UTF8'))"

# SQL: hash of a person's id in an erasure of campaign c, as `app.privacy.erasure_list` computes it.
ERASED_PERSON_HASH = "sha256(convert_to(concat(c.link_key, E'\\n', {platform}, E'\\n', {worker_id}), 'UTF8'))"

# SQL: name by which a person of a platform is listed in a campaign. The key of links finds numbers, not texts.
LISTED_NAME = """coalesce(
    (SELECT p.name FROM personal_links p WHERE p.campaign_id = {campaign_id} AND p.number = CASE
     WHEN {platform} = :personal_platform AND {worker_id} ~ '^[1-9][0-9]{{0,8}}$' THEN CAST({worker_id} AS int) END),
    {worker_id})"""

# SQL: id by which annotator a of :campaign is listed.
NAMED_PERSON_ID = LISTED_NAME.format(campaign_id=":campaign", platform="a.platform", worker_id="a.worker_id")

IS_LISTED = """EXISTS (
    SELECT FROM participant_lists l
    WHERE l.campaign_id = :campaign AND l.list = '{list}' AND l.person_hash = person.hash)"""

SELECT_PARTICIPATION_CHECK = text(f"""
    SELECT EXISTS (SELECT FROM annotators a WHERE a.campaign_id = :campaign AND a.platform = person.platform
                   AND a.worker_id = person.worker_id) AS has_arrived,
           NOT {IS_LISTED.format(list="block")}
           AND (NOT EXISTS (SELECT FROM participant_lists l WHERE l.campaign_id = :campaign AND l.list = 'allow')
                OR {IS_LISTED.format(list="allow")}) AS lists_allow,
           CAST(:platform AS text) <> ALL(CAST(:named_by_researcher AS text[])) AND EXISTS (
               SELECT FROM erasures e WHERE e.campaign_id = :campaign
               AND person.erased_hash = ANY(e.person_hashes)) AS was_erased,
           person.id AS person_id,
           coalesce(c.visit_settings -> 'exclude_campaigns', '[]') AS exclude_campaigns,
           coalesce(c.visit_settings -> 'only_campaigns', '[]') AS only_campaigns
    FROM campaigns c CROSS JOIN LATERAL (
        SELECT named.*, {LISTED_PERSON_HASH.format(person_id="named.id")} AS hash,
               {ERASED_PERSON_HASH.format(platform="named.platform", worker_id="named.worker_id")} AS erased_hash
        FROM (
            SELECT CAST(:platform AS text) AS platform, CAST(:worker_id AS text) AS worker_id, {
    LISTED_NAME.format(
        campaign_id=":campaign", platform="CAST(:platform AS text)", worker_id="CAST(:worker_id AS text)"
    )
} AS id
        ) AS named
    ) AS person
    WHERE c.id = :campaign
""")

SELECT_OTHER_CAMPAIGN_IDS = text(
    "SELECT id FROM campaigns WHERE slug = ANY(CAST(:slugs AS text[])) AND id <> :campaign"
)

TOOK_PART = text(f"""
    SELECT EXISTS (
        SELECT FROM annotators o
        WHERE o.campaign_id = :campaign
          AND {IS_SAME_PERSON.format(platform="CAST(:platform AS text)", person_id="CAST(:person_id AS text)")}
          AND EXISTS (SELECT FROM responses r WHERE r.campaign_id = :campaign AND r.annotator_id = o.id OFFSET 0))
""")


class ParticipationCheck(Record):
    """Whether a person is in a campaign already, whether they were erased from it, whether its lists admit them, and
    which other campaigns decide.

    `was_erased` is about ids of platforms: a program may give its own name to another person, and so may a new personal
    link its number.
    """

    has_arrived: bool
    was_erased: bool
    lists_allow: bool
    person_id: str
    exclude_campaigns: list[str]
    only_campaigns: list[str]


async def refuse_person_who_may_not_take_part(
    connection: Driver, campaign_id: int, platform: str, arrival: Arrival
) -> None:
    """Raise `Forbidden` (`may_not_take_part`, `was_erased`) for a person without an assignment who may not take part.

    Simulated annotators always may: they stand for people who may.
    """
    if platform == SIMULATION_PLATFORM.name:
        return
    parameters = {
        "campaign": campaign_id,
        "platform": platform,
        "worker_id": arrival.worker_id,
        **SAME_PERSON_PARAMETERS,
        "named_by_researcher": [API_PLATFORM.name, PERSONAL_PLATFORM.name],
    }
    check_parameters = {name: value for name, value in parameters.items() if name != "id_platforms"}
    participation = await fetch_first_row_or_none(
        connection, SELECT_PARTICIPATION_CHECK, check_parameters, ParticipationCheck
    )
    if participation is None or participation.has_arrived:
        return
    if participation.was_erased:
        raise Forbidden(
            "Your data were erased from this study, so you cannot take part in it again.",
            code="was_erased",
        )
    person = {**parameters, "person_id": participation.person_id}
    del person["worker_id"], person["named_by_researcher"]
    if (
        not participation.lists_allow
        or await has_taken_part_in_any(connection, participation.exclude_campaigns, person)
        or (
            participation.only_campaigns
            and not await has_taken_part_in_any(connection, participation.only_campaigns, person)
        )
    ):
        raise may_not_take_part_error()


async def has_taken_part_in_any(connection: Driver, slugs: Sequence[str], person: Mapping[str, Any]) -> bool:
    """Return whether a person has answered in one of these other campaigns.

    Args:
        connection: Connection of the request.
        slugs: Names of campaigns in addresses.
        person: Parameters of `TOOK_PART`, with the id of the campaign that the person comes to.

    """
    if not slugs:
        return False
    parameters = {"slugs": [*slugs], "campaign": person["campaign"]}
    for other_campaign_id in await fetch_first_column(connection, SELECT_OTHER_CAMPAIGN_IDS, parameters):
        if await fetch_first_value_or_none(connection, TOOK_PART, {**person, "campaign": other_campaign_id}):
            return True
    return False


def may_not_take_part_error() -> Forbidden:
    return Forbidden("This study is for other people, so it is not open to you.", code="may_not_take_part")
