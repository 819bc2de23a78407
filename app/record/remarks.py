"""Comments and flags of annotators, as they lie beside answers: found by what they are, whom they are from and what
they are about, newest first.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.remarks import EXTRA, HIT
from app.record.stream import COUNTING

CHECK = "check "  # before the number of a check, where a remark is about one
LINES_PER_PAGE = 50
MOST_FLAGGED = 20  # items on a page

RemarkKind = Literal["", "flags", "comments"]
KINDS: dict[RemarkKind, str] = {"flags": "Flags", "comments": "Comments"}

# Of the answer `r`: its annotator has not changed it.
NOT_TAKEN_BACK = """
    NOT EXISTS (SELECT FROM decisions d
                WHERE d.campaign_id = r.campaign_id AND d.response_seq = r.seq AND d.kind = 'withdraw')"""

SAID = f"CROSS JOIN LATERAL jsonb_each(r.extra -> '{EXTRA}') AS said (about, told)"

# What a remark `said` in the answer `r` is about: an item `i`, a check `k`, and of an output its segment `s`.
ABOUT = f"""
    LEFT JOIN items i ON i.campaign_id = r.campaign_id
        AND i.number = CASE WHEN said.about ~ '^[0-9]+$' THEN CAST(said.about AS int) END
    LEFT JOIN check_items k ON k.campaign_id = r.campaign_id
        AND k.number = CASE WHEN said.about LIKE '{CHECK}%' THEN CAST(substr(said.about, {len(CHECK) + 1}) AS int) END
    LEFT JOIN segments s ON s.campaign_id = r.campaign_id AND s.number = r.segment"""
ITEM = "coalesce(i.external_id, k.external_id)"

# Before all else, those of the annotator :annotator, and those that say something of the item :item, or of a check that
# is called so.
THOSE = f"""
    AND (CAST(:annotator AS text) = '' OR annotator_id = (
        SELECT id FROM named_annotators WHERE campaign_id = :campaign AND name = upper(:annotator)))
    AND (CAST(:item AS text) = '' OR extra -> '{EXTRA}' ?| ARRAY(
        SELECT CAST(number AS text) FROM items WHERE campaign_id = :campaign AND external_id = :item
        UNION ALL
        SELECT '{CHECK}' || number FROM check_items WHERE campaign_id = :campaign AND external_id = :item))"""  # noqa: S608  (made of constants)


def source(only: str = "") -> str:
    """SQL, from FROM on, for the remarks of a campaign, in answers of which `only` is true."""
    return f"""
    FROM (SELECT *, {COUNTING} AS counts FROM responses
          WHERE campaign_id = :campaign AND extra ? '{EXTRA}' {only}) AS r
    {SAID} {ABOUT}
    WHERE {NOT_TAKEN_BACK}"""  # noqa: S608  (made of constants)


# Words are looked for in any case, and as they stand.
WHERE = f"""
    AND (CAST(:kind AS text) = '' OR CAST(:kind AS text) = 'flags' AND told ? 'flag'
         OR CAST(:kind AS text) = 'comments' AND told ? 'comment')
    AND (CAST(:item AS text) = '' OR {ITEM} = CAST(:item AS text))
    AND (CAST(:words AS text) = '' OR strpos(
        lower(concat_ws(' ', told ->> 'comment', told ->> 'flag', {ITEM}, coalesce(i.shown, k.shown))),
        lower(CAST(:words AS text))) > 0)"""

COLUMNS = f"""
    r.seq, r.annotator_id, r.received_at, r.hit_id, r.counts, s.external_id AS segment, {ITEM} AS item, said.about,
    k.number IS NOT NULL AS of_check, coalesce(i.shown, k.shown) AS shown, told ->> 'flag' AS flag,
    told ->> 'comment' AS comment"""

NAMED = """
    SELECT found.*, n.name, n.pseudonym FROM ({found}) AS found
    JOIN named_annotators n ON n.campaign_id = :campaign AND n.id = found.annotator_id ORDER BY {order}, about"""
A_PAGE = f"SELECT {COLUMNS} {source(THOSE)} {WHERE} ORDER BY r.seq DESC, said.about LIMIT :limit OFFSET :offset"

COUNT = text(f"SELECT count(*) {source(THOSE)} {WHERE}")
LINES = text(NAMED.format(found=A_PAGE, order="seq DESC"))
ALL = text(NAMED.format(found=f"SELECT {COLUMNS} {source()}", order="seq"))  # oldest first
ANY = text(f"SELECT EXISTS (SELECT FROM responses WHERE campaign_id = :campaign AND extra ? '{EXTRA}')")  # noqa: S608  (constants)

FLAGGED = text(f"""
    SELECT {ITEM} AS item, CASE WHEN said.about <> '{HIT}' THEN s.external_id END AS segment,
           coalesce(i.shown, k.shown) AS shown, count(DISTINCT r.annotator_id) AS people,
           array_agg(told ->> 'flag') AS flags
    {source()} AND told ? 'flag' AND r.counts
    GROUP BY 1, 2, 3 ORDER BY people DESC, max(r.seq) DESC LIMIT {MOST_FLAGGED}
""")


@dataclass(frozen=True)
class WantedRemarks:
    """Which remarks are asked for. Empty: whatever it is.

    item: the researcher's id. annotator: as pages call them. words: somewhere in what was said, or in what it is about.
    """

    kind: RemarkKind = ""
    item: str = ""
    annotator: str = ""
    words: str = ""

    def parameters(self, campaign: int) -> dict[str, Any]:
        """Of the statements."""
        return {"campaign": campaign, **vars(self)}


@dataclass(frozen=True)
class FoundRemarks:
    """A page of remarks, of how many pages, and how many remarks there are in all."""

    lines: Sequence[Row[Any]]
    page: int
    pages: int
    total: int


@dataclass(frozen=True)
class FlaggedLine:
    """An item, of an output with its segment, how many people flagged it, and how often they chose what; HITs where
    there is no item.
    """

    item: str | None
    segment: str | None
    shown: str | None
    people: int
    reasons: Sequence[tuple[str, int]]


async def page_of(
    connection: AsyncConnection, campaign: int, wanted: WantedRemarks, page: int = 1, size: int = LINES_PER_PAGE
) -> FoundRemarks:
    """A page of what is wanted, from 1 on, newest first; beyond the last one, the last."""
    parameters = wanted.parameters(campaign)
    total = (await connection.execute(COUNT, parameters)).scalar_one()
    pages = max(1, -(-total // size))
    page = min(page, pages)
    rows = await connection.execute(LINES, parameters | {"limit": size, "offset": (page - 1) * size})
    return FoundRemarks(rows.all(), page, pages, total)


async def flagged(connection: AsyncConnection, campaign: int) -> list[FlaggedLine]:
    """The items that most people flagged whose answers count."""
    rows = await connection.execute(FLAGGED, {"campaign": campaign})
    return [
        FlaggedLine(row.item, row.segment, row.shown, row.people, Counter(filter(None, row.flags)).most_common())
        for row in rows
    ]


async def are_there(connection: AsyncConnection, campaign: Any) -> bool:
    """Whether a campaign asks for remarks, or has any."""
    asks = {campaign.flag_on, campaign.comment_on} != {"none"}
    return asks or bool((await connection.execute(ANY, {"campaign": campaign.id})).scalar_one())
