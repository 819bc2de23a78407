"""Check whether a person may take part in a campaign, before the first assignment of that person is made.

Four settings decide: the block list and the allow list of the campaign, and the other campaigns that people must or
must not have taken part in. A person who is in the campaign already stays: a change of these stops no work.
"""

from sqlalchemy import text

from app.annotation.platforms.personal import PLATFORM as PERSONAL_PLATFORM
from app.annotation.platforms.platform import Arrival
from app.annotation.platforms.programs import SIMULATION_PLATFORM
from app.database.session import Driver, fetch_first_value_or_none
from app.errors import Forbidden

# SQL: hash of a person's id on the lists of campaign c. Its key keeps the hashes of two campaigns from being joined.
LISTED_PERSON_HASH = "sha256(convert_to(concat(c.link_key, E'\\nlisted\\n', {person_id}), 'UTF8'))"

# SQL: name by which a person of a platform is listed in a campaign. The key of links finds numbers, not texts.
LISTED_NAME = """coalesce(
    (SELECT p.name FROM personal_links p WHERE p.campaign_id = {campaign_id} AND p.number = CASE
     WHEN {platform} = :personal_platform AND {worker_id} ~ '^[1-9][0-9]{{0,8}}$' THEN CAST({worker_id} AS int) END),
    {worker_id})"""

# SQL: id by which annotator a of campaign c is listed.
NAMED_PERSON_ID = LISTED_NAME.format(campaign_id="a.campaign_id", platform="a.platform", worker_id="a.worker_id")

# A person with a personal link is listed by name, and has the same name in other campaigns, where the number differs.
TOOK_PART = """EXISTS (
    SELECT FROM campaigns other JOIN annotators o ON o.campaign_id = other.id AND o.platform = person.platform
        AND o.worker_id = CASE WHEN person.platform <> :personal_platform THEN person.id ELSE (
            SELECT CAST(p.number AS text) FROM personal_links p
            WHERE p.campaign_id = other.id AND p.name = person.id) END
    WHERE other.slug IN (SELECT jsonb_array_elements_text(c.visit_settings -> '{setting}')) AND other.id <> c.id
      AND EXISTS (SELECT FROM responses r WHERE r.campaign_id = other.id AND r.annotator_id = o.id))"""
HAS_OTHER_CAMPAIGNS = "coalesce(c.visit_settings -> '{setting}', '[]') <> '[]'"
IS_LISTED = """EXISTS (
    SELECT FROM participant_lists l WHERE l.campaign_id = c.id AND l.list = '{list}' AND l.person_hash = person.hash)"""

MAY_TAKE_PART = text(f"""
    SELECT EXISTS (SELECT FROM annotators a
                   WHERE a.campaign_id = c.id AND a.platform = person.platform AND a.worker_id = person.worker_id)
        OR (
            NOT {IS_LISTED.format(list="block")}
            AND (NOT EXISTS (SELECT FROM participant_lists l WHERE l.campaign_id = c.id AND l.list = 'allow')
                 OR {IS_LISTED.format(list="allow")})
            AND NOT ({HAS_OTHER_CAMPAIGNS.format(setting="exclude_campaigns")}
                     AND {TOOK_PART.format(setting="exclude_campaigns")})
            AND (NOT {HAS_OTHER_CAMPAIGNS.format(setting="only_campaigns")}
                 OR {TOOK_PART.format(setting="only_campaigns")}))
    FROM campaigns c CROSS JOIN LATERAL (
        SELECT named.*, {LISTED_PERSON_HASH.format(person_id="named.id")} AS hash
        FROM (
            SELECT CAST(:platform AS text) AS platform, CAST(:worker_id AS text) AS worker_id, {
    LISTED_NAME.format(campaign_id="c.id", platform="CAST(:platform AS text)", worker_id="CAST(:worker_id AS text)")
} AS id
        ) AS named
    ) AS person
    WHERE c.id = :campaign
""")


async def refuse_person_who_may_not_take_part(
    connection: Driver, campaign_id: int, platform: str, arrival: Arrival
) -> None:
    """Raise `Forbidden` (`may_not_take_part`) for a person without an assignment who may not take part.

    Simulated annotators always may: they stand for people who may.
    """
    if platform == SIMULATION_PLATFORM.name:
        return
    parameters = {
        "campaign": campaign_id,
        "platform": platform,
        "worker_id": arrival.worker_id,
        "personal_platform": PERSONAL_PLATFORM.name,
    }
    if await fetch_first_value_or_none(connection, MAY_TAKE_PART, parameters) is False:
        raise may_not_take_part_error()


def may_not_take_part_error() -> Forbidden:
    return Forbidden("This study is for other people, so it is not open to you.", code="may_not_take_part")
