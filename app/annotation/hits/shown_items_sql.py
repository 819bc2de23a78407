"""SQL that reads what the page of a HIT shows: ids and texts of items, or outputs with their source and reference."""

from collections.abc import Mapping, Sequence

from sqlalchemy import text

from app.database.session import Record, sql_and_parameter_names_of_statement
from app.designs.content import SourceAndReference

# The researcher's ids and the texts of :items of :campaign, in that order, as the HIT :hit shows them: texts that were
# corrected after its lease are still the former ones.
SELECT_SHOWN_ITEMS_OF_HIT = """
    SELECT array_agg(i.external_id ORDER BY place) AS ids,
           array_agg(coalesce(former.shown, i.shown) ORDER BY place) AS texts
    FROM items i CROSS JOIN array_position(CAST(:items AS int[]), i.number) AS place LEFT JOIN LATERAL (
        SELECT v.shown FROM item_versions v
        WHERE v.item = i.number AND v.last_hit >= :hit AND v.campaign_id = :campaign ORDER BY v.version LIMIT 1
    ) AS former ON true
    WHERE i.campaign_id = :campaign AND i.number = ANY(CAST(:items AS int[]))"""

# The same for outputs for :segment, with source and reference; :shown are the items of the HIT that the page shows.
SELECT_SHOWN_OUTPUTS_OF_HIT = """
    SELECT shown.ids, shown.texts, s.source, s.reference FROM segments s, LATERAL (
        SELECT array_agg(i.external_id ORDER BY place) AS ids,
               array_agg(coalesce(former.shown, o.shown) ORDER BY place) AS texts
        FROM items i JOIN outputs o ON o.campaign_id = :campaign AND o.segment = s.number AND o.item = i.number
        CROSS JOIN array_position(CAST(:shown AS int[]), i.number) AS place LEFT JOIN LATERAL (
            SELECT v.shown FROM output_versions v
            WHERE v.campaign_id = :campaign AND v.segment = o.segment AND v.item = o.item AND v.last_hit >= :hit
            ORDER BY v.version LIMIT 1
        ) AS former ON true
        WHERE i.campaign_id = :campaign AND i.number = ANY(CAST(:shown AS int[]))
    ) AS shown
    WHERE s.campaign_id = :campaign AND s.number = CAST(:segment AS int)"""

SHOWN_PARAMETER_TYPES = {
    "campaign": "bigint",
    "hit": "bigint",
    "items": "int[]",
    "segment": "int",
    "shown": "int[]",
}


def sql_argument_declarations(names: Sequence[str], types: Mapping[str, str]) -> str:
    """Return the declaration of a function's arguments."""
    return ", ".join(f"{name} {types[name]}" for name in names)


# What the leased HIT shows. A statement has one snapshot from before its locks, so a correction stored meanwhile
# is seen only by the statements of a volatile function. The database holds these functions, so a
# change needs a migration; a test compares the two.
SHOWN_ITEMS_BODY, SHOWN_ITEMS_ARGUMENTS = sql_and_parameter_names_of_statement(
    text(f"""
    #variable_conflict use_column
    BEGIN
        SELECT shown.ids, shown.texts INTO ids, texts FROM ({SELECT_SHOWN_ITEMS_OF_HIT}) AS shown;
    END
    """)
)
SHOWN_ITEMS_FUNCTION = f"""
    CREATE FUNCTION easel_shown_items(
        {sql_argument_declarations(SHOWN_ITEMS_ARGUMENTS, SHOWN_PARAMETER_TYPES)},
        OUT ids text[], OUT texts text[]
    ) LANGUAGE plpgsql AS $${SHOWN_ITEMS_BODY}$$
"""
SHOWN_OUTPUTS_BODY, SHOWN_OUTPUTS_ARGUMENTS = sql_and_parameter_names_of_statement(
    text(f"""
    #variable_conflict use_column
    BEGIN
        SELECT shown.ids, shown.texts, shown.source, shown.reference INTO ids, texts, source, reference
        FROM ({SELECT_SHOWN_OUTPUTS_OF_HIT}) AS shown;
    END
    """)
)
SHOWN_OUTPUTS_FUNCTION = f"""
    CREATE FUNCTION easel_shown_outputs(
        {sql_argument_declarations(SHOWN_OUTPUTS_ARGUMENTS, SHOWN_PARAMETER_TYPES)},
        OUT ids text[], OUT texts text[], OUT source text, OUT reference text
    ) LANGUAGE plpgsql AS $${SHOWN_OUTPUTS_BODY}$$
"""


class ShownItems(Record):
    """Researcher's ids and texts of a HIT's items as presented, with source and reference if they are outputs."""

    ids: list[str]
    texts: list[str]

    @property
    def source_and_reference(self) -> SourceAndReference | None:
        """Texts shown above outputs; None for other items."""
        return SourceAndReference(self["source"], self["reference"]) if "source" in self else None
