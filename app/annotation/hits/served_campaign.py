"""The columns of a campaign that annotators' pages and the serving of HITs read."""

from typing import Any

from sqlalchemy import text

from app.annotation.hits.index_settings import IndexSettings
from app.database.session import columns_of_row_class_sql
from app.designs.criteria import CommentAskingCampaign, LabelledCampaign, LearningCampaign
from app.designs.criteria_settings import CriterionSettings
from app.designs.remarks import CommentRequest, RemarkTarget
from app.selection.condition_squares import BlockOrder

# SQL of the settings for open comments, by attribute.
COMMENT_SETTING_SOURCES = {
    "comment_request": "general_settings ->> 'comment_request'",
    "comment_question": "general_settings ->> 'comment_question'",
}


class ServedCampaign(LabelledCampaign, CommentAskingCampaign, LearningCampaign, IndexSettings):
    """Columns of a campaign that annotators' pages and the serving of HITs read."""

    link_key: str
    status: str
    design_name: str
    design_settings: dict[str, Any]
    name: str
    question: str
    instructions: str
    language: str
    low_label: str
    middle_label: str | None
    high_label: str
    criteria_settings: list[CriterionSettings]
    criteria_shown: str
    asked_criterion: int | None
    tie_margin_points: int
    update_law: str
    epsilon: float
    show_numbers: bool
    content: str
    source_column: str | None
    reference_column: str | None
    differences: str
    https_media: bool
    latex: bool
    frame_origins: list[str] | None
    form_origins: list[str] | None
    panel_title: str | None
    minutes_per_hit: float | None
    recruiting_minutes: int | None
    pay: str | None
    pay_per_hit: float | None
    currency: str
    in_short: str
    leave_early: bool
    undo: bool
    break_minutes: int | None
    people_per_address: int | None
    selection: str
    hits_per_annotator: int | None
    repeat_items: bool
    implied_asked_percent: int | None
    lease_minutes: int
    cannot_be_judged: bool
    unjudged_reasons: list[str]
    unjudged_people: int
    comment_on: RemarkTarget
    comment_request: CommentRequest | None
    comment_question: str | None
    flag_on: RemarkTarget
    flag_reasons: list[str]
    has_checks: bool
    checks_percent: float | None
    gold_feedback: bool
    fixed_set: str | None
    assigned_column: str | None
    condition_column: str | None
    content_column: str | None
    block_order: BlockOrder | None
    tasks_per_block: int | None
    block_pause: str | None
    must_play: str | None
    items_language: str | None
    source_language: str | None
    max_plays: str | None
    loop: bool
    switch_sounds: str | None
    iteration: int
    revision: int


SERVED_CAMPAIGN_COLUMNS = ", ".join(
    (
        columns_of_row_class_sql(IndexSettings, "c", rule_name="rule"),
        columns_of_row_class_sql(
            ServedCampaign,
            "c",
            design_name="design",
            criteria_settings="criteria",
            frame_origins="crowd_settings -> 'frame_origins'",
            form_origins="crowd_settings -> 'form_origins'",
            recruiting_minutes="crowd_settings -> 'recruiting_minutes'",
            panel_title="crowd_settings ->> 'panel_title'",
            fixed_set="general_settings ->> 'fixed_set'",
            assigned_column="general_settings ->> 'assigned_column'",
            condition_column="general_settings ->> 'condition_column'",
            content_column="general_settings ->> 'content_column'",
            block_order="general_settings ->> 'block_order'",
            tasks_per_block="general_settings -> 'tasks_per_block'",
            block_pause="general_settings ->> 'block_pause'",
            must_play="general_settings ->> 'must_play'",
            items_language="general_settings ->> 'items_language'",
            source_language="general_settings ->> 'source_language'",
            max_plays="general_settings ->> 'max_plays'",
            switch_sounds="general_settings ->> 'switch_sounds'",
            **COMMENT_SETTING_SOURCES,
            loop="""general_settings @> '{"loop": true}'""",
        ),
    )
)

# SQL: a text that is different after each change of the campaign's row: the transaction that wrote it, and its place.
CAMPAIGN_VERSION = "concat(c.xmin, ' ', c.ctid)"

# On a cluster, the versions of two copies of a row differ: the join chooses the copy where the posteriors are stored.
VERSIONED_CAMPAIGN_SOURCE = """
    FROM campaigns c LEFT JOIN (
        SELECT FROM posteriors WHERE campaign_id = :campaign AND revision = 0 AND criterion = 0 AND subject = 0 LIMIT 1
    ) AS place ON true
    WHERE c.id = :campaign"""
SELECT_SERVED_CAMPAIGN = text(f"""
    SELECT {SERVED_CAMPAIGN_COLUMNS}, {CAMPAIGN_VERSION} AS campaign_version {VERSIONED_CAMPAIGN_SOURCE}
""")


class VersionedCampaign(ServedCampaign):
    """A campaign with its version."""

    campaign_version: str
