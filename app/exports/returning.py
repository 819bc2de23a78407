"""The export of annotators who took part in earlier campaigns of a study: it links the pseudonyms of its waves."""

from collections.abc import AsyncIterator, Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.platforms.participant_check import NAMED_PERSON_ID
from app.annotation.platforms.same_person import IS_SAME_PERSON, SAME_PERSON_PARAMETERS
from app.campaigns.referenced_campaigns import load_reachable_slugs
from app.database.audit_log import log_change
from app.designs.campaign import Campaign
from app.exports.export_types import Export, ExportRequest, Pieces, stream_table_from_own_snapshot
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.text.table_formats import EXPORT_ROWS_PER_BATCH, RowCells, TableStream

RETURNING_EXPORT_COLUMNS = ("annotator", "name", "earlier_campaign", "earlier_annotator")

LIST_PEOPLE = text(f"""
    SELECT a.pseudonym, named.name, a.platform, {NAMED_PERSON_ID} AS person_id
    FROM annotators a JOIN named_annotators named ON named.campaign_id = :campaign AND named.id = a.id
    WHERE a.campaign_id = :campaign ORDER BY a.id
""")

# Campaign by campaign, since a statement about annotators of two campaigns would need both shards of a cluster.
FIND_SAME_PEOPLE = text(f"""
    SELECT person.position, o.pseudonym
    FROM unnest(CAST(:platforms AS text[]), CAST(:people AS text[]))
        WITH ORDINALITY AS person(platform, id, position)
    JOIN annotators o ON o.campaign_id = :campaign
        AND {IS_SAME_PERSON.format(platform="person.platform", person_id="person.id")}
    ORDER BY person.position, o.id
""")


async def load_visible_earlier_campaigns(connection: AsyncConnection, campaign: Campaign) -> list[Campaign]:
    """Return the campaigns that `only_campaigns` names and whose people the acting researcher may see."""
    slugs = await load_reachable_slugs(connection, campaign.only_campaigns)
    return [await load_campaign_by_slug_or_refuse(connection, slug) for slug in sorted(slugs - {campaign.slug})]


async def open_returning_annotators_export(request: ExportRequest) -> Pieces:
    """Open the export, and log the download in each earlier campaign, too."""
    async with request.engine.begin() as connection:
        earlier_campaigns = await load_visible_earlier_campaigns(connection, request.campaign)
        for earlier in earlier_campaigns:
            await log_change(
                connection, "people.downloaded", earlier, about=f"returning.{request.format} of {request.slug}"
            )

    async def open_table(connection: AsyncConnection, campaign: Campaign) -> TableStream:
        return open_returning_annotators_table(connection, campaign, earlier_campaigns)

    return stream_table_from_own_snapshot(request, open_table, request.campaign)


RETURNING_EXPORT = Export(open_returning_annotators_export, is_about_annotators=True)


def open_returning_annotators_table(
    connection: AsyncConnection, campaign: Campaign, earlier_campaigns: Sequence[Campaign]
) -> TableStream:
    """Return one row per annotator and annotator of an earlier campaign who is the same person.

    A person who came to an earlier campaign in two ways, such as by a platform and by a personal link, has two rows. No
    row has an id or a name of a person.
    """

    async def chunks() -> AsyncIterator[list[RowCells]]:
        if not earlier_campaigns:
            return
        parameters = {"campaign": campaign.id, "personal_platform": SAME_PERSON_PARAMETERS["personal_platform"]}
        people = (await connection.execute(LIST_PEOPLE, parameters)).all()
        for start in range(0, len(people), EXPORT_ROWS_PER_BATCH):
            batch = people[start : start + EXPORT_ROWS_PER_BATCH]
            rows: list[tuple[int, RowCells]] = []
            for earlier in earlier_campaigns:
                same_people = await connection.execute(
                    FIND_SAME_PEOPLE,
                    {
                        **SAME_PERSON_PARAMETERS,
                        "campaign": earlier.id,
                        "platforms": [person.platform for person in batch],
                        "people": [person.person_id for person in batch],
                    },
                )
                for position, pseudonym in same_people:
                    person = batch[position - 1]
                    rows.append((position, (person.pseudonym, person.name, earlier.slug, pseudonym)))
            yield [cells for _, cells in sorted(rows, key=lambda row: row[0])]

    return TableStream(RETURNING_EXPORT_COLUMNS, chunks())
