"""Queries for annotators' comments and flags, which are stored with answers: by kind, annotator, item and words."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.campaign import Campaign
from app.designs.remarks import REMARKS_KEY, WHOLE_HIT
from app.http.paging import AddressQuery, Page, PageNumber, SearchWords
from app.record.responses import COUNTING_RESPONSES_CONDITION

CHECK_REMARK_PREFIX = "check "  # before the number of a check, where a remark is about one
REMARKS_PER_PAGE = 50
MAX_FLAGGED_ITEMS = 20  # items on a page

RemarkKind = Literal["", "flags", "comments"]
REMARK_KIND_TITLES: dict[RemarkKind, str] = {"flags": "Flags", "comments": "Comments"}

# Condition on an answer `r`: its annotator has not replaced it.
ANSWER_NOT_WITHDRAWN = """
    NOT EXISTS (SELECT FROM decisions d
                WHERE d.campaign_id = :campaign AND d.response_seq = r.seq AND d.kind = 'withdraw')"""

EACH_REMARK_JOIN = f"CROSS JOIN LATERAL jsonb_each(r.extra -> '{REMARKS_KEY}') AS said (about, told)"

# Subject of the remark `said` in the answer `r`: an item `i` or a check `k`, and for an output its segment `s`.
REMARK_SUBJECT_JOINS = f"""
    LEFT JOIN items i ON i.campaign_id = r.campaign_id
        AND i.number = CASE WHEN said.about ~ '^[0-9]+$' THEN CAST(said.about AS int) END
    LEFT JOIN check_items k ON k.campaign_id = r.campaign_id
        AND k.number = CASE WHEN said.about LIKE '{CHECK_REMARK_PREFIX}%'
                       THEN CAST(substr(said.about, {len(CHECK_REMARK_PREFIX) + 1}) AS int) END
    LEFT JOIN segments s ON s.campaign_id = r.campaign_id AND s.number = r.segment"""
REMARK_SUBJECT_ID = "coalesce(i.external_id, k.external_id)"

# Answers by the annotator :annotator that have a remark about the item or check :item. Applied first, since it is the
# cheapest filter.
REMARK_ANSWER_FILTER = f"""
    AND (CAST(:annotator AS text) = '' OR annotator_id = (
        SELECT id FROM named_annotators WHERE campaign_id = :campaign AND name = upper(:annotator)))
    AND (CAST(:item AS text) = '' OR extra -> '{REMARKS_KEY}' ?| ARRAY(
        SELECT CAST(number AS text) FROM items WHERE campaign_id = :campaign AND external_id = :item
        UNION ALL
        SELECT '{CHECK_REMARK_PREFIX}' || number FROM check_items
        WHERE campaign_id = :campaign AND external_id = :item))"""


def remarks_source_sql(condition: str = "") -> str:
    """Return the FROM and WHERE clauses for the remarks of a campaign, in answers that meet a condition."""
    return f"""
    FROM (SELECT *, {COUNTING_RESPONSES_CONDITION} AS counts FROM responses
          WHERE campaign_id = :campaign AND extra ? '{REMARKS_KEY}' {condition}) AS r
    {EACH_REMARK_JOIN} {REMARK_SUBJECT_JOINS}
    WHERE {ANSWER_NOT_WITHDRAWN}"""


# Words are found literally, in upper or lower case.
REMARK_FILTER = f"""
    AND (CAST(:kind AS text) = '' OR CAST(:kind AS text) = 'flags' AND told ? 'flag'
         OR CAST(:kind AS text) = 'comments' AND told ? 'comment')
    AND (CAST(:item AS text) = '' OR {REMARK_SUBJECT_ID} = CAST(:item AS text))
    AND (CAST(:words AS text) = '' OR strpos(
        lower(concat_ws(
            ' ', told ->> 'comment', told ->> 'flag', {REMARK_SUBJECT_ID}, coalesce(i.shown, k.shown))),
        lower(CAST(:words AS text))) > 0)"""

REMARK_QUERY_COLUMNS = f"""
    r.seq, r.annotator_id, r.received_at, r.hit_id, r.counts, s.external_id AS segment, {REMARK_SUBJECT_ID} AS item,
    said.about, k.number IS NOT NULL AS of_check, coalesce(i.shown, k.shown) AS shown, told ->> 'flag' AS flag,
    told ->> 'comment' AS comment"""

WITH_ANNOTATOR_NAMES = """
    SELECT remarks.*, n.name, n.pseudonym FROM ({remarks}) AS remarks
    JOIN named_annotators n ON n.campaign_id = :campaign AND n.id = remarks.annotator_id ORDER BY {order}, about"""
REMARKS_PAGE_SQL = f"""
    SELECT {REMARK_QUERY_COLUMNS} {remarks_source_sql(REMARK_ANSWER_FILTER)} {REMARK_FILTER}
    ORDER BY r.seq DESC, said.about LIMIT :limit OFFSET :offset"""

COUNT_REMARKS = text(f"SELECT count(*) {remarks_source_sql(REMARK_ANSWER_FILTER)} {REMARK_FILTER}")
FIND_REMARKS_PAGE = text(WITH_ANNOTATOR_NAMES.format(remarks=REMARKS_PAGE_SQL, order="seq DESC"))
FIND_ALL_REMARKS = text(
    WITH_ANNOTATOR_NAMES.format(remarks=f"SELECT {REMARK_QUERY_COLUMNS} {remarks_source_sql()}", order="seq")
)  # oldest first
HAS_ANY_REMARK = text(
    f"SELECT EXISTS (SELECT FROM responses WHERE campaign_id = :campaign AND extra ? '{REMARKS_KEY}')"
)

FIND_FLAGGED_ITEMS = text(f"""
    SELECT {REMARK_SUBJECT_ID} AS item, CASE WHEN said.about <> '{WHOLE_HIT}' THEN s.external_id END AS segment,
           coalesce(i.shown, k.shown) AS shown, count(DISTINCT r.annotator_id) AS people,
           array_agg(told ->> 'flag' ORDER BY told ->> 'flag') AS flags
    {remarks_source_sql()} AND told ? 'flag' AND r.counts
    GROUP BY 1, 2, 3 ORDER BY people DESC, max(r.seq) DESC, 1, 2 LIMIT {MAX_FLAGGED_ITEMS}
""")


class RemarksQuery(AddressQuery):
    """Remarks to show; an empty field matches all."""

    kind: RemarkKind = Field(default="", description="Empty: both.")
    item: Annotated[str, StringConstraints(max_length=1000, strip_whitespace=True)] = Field(
        default="", description="Only remarks about the item with this id."
    )
    annotator: Annotated[str, StringConstraints(max_length=40, strip_whitespace=True)] = Field(
        default="", description="Only remarks by this annotator, such as A7."
    )
    words: SearchWords = Field(default="", description="Words in the remark or in the item.")
    page: PageNumber = 1


@dataclass(frozen=True)
class FlaggedSubject:
    """A flagged item, or output with its segment; a whole HIT if `item` is None.

    `people` is the number of annotators that flagged it, `reasons` how often each reason was chosen.
    """

    item: str | None
    segment: str | None
    shown: str | None
    people: int
    reasons: Sequence[tuple[str, int]]


async def load_remarks_page(
    connection: AsyncConnection,
    campaign_id: int,
    query: RemarksQuery,
    page_size: int = REMARKS_PER_PAGE,
) -> Page[Row[Any]]:
    """Return a page of the matching remarks, newest first."""
    parameters = {"campaign": campaign_id} | query.model_dump(include={"kind", "item", "annotator", "words"})
    page: Page[Row[Any]] = Page(
        query.page, page_size, (await connection.execute(COUNT_REMARKS, parameters)).scalar_one()
    )
    rows = await connection.execute(FIND_REMARKS_PAGE, parameters | {"limit": page_size, "offset": page.offset})
    return replace(page, rows=rows.all())


async def load_flagged_items(connection: AsyncConnection, campaign_id: int) -> list[FlaggedSubject]:
    """Return the items flagged by the most annotators, among answers that count."""
    rows = await connection.execute(FIND_FLAGGED_ITEMS, {"campaign": campaign_id})
    return [
        FlaggedSubject(row.item, row.segment, row.shown, row.people, Counter(filter(None, row.flags)).most_common())
        for row in rows
    ]


async def are_remarks_asked_or_stored(connection: AsyncConnection, campaign: Campaign) -> bool:
    """Return whether a campaign asks for remarks, or has any."""
    asks_for_remarks = {campaign.flag_on, campaign.comment_on} != {"none"}
    return asks_for_remarks or bool((await connection.execute(HAS_ANY_REMARK, {"campaign": campaign.id})).scalar_one())
