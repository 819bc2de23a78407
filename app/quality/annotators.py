"""The annotators of a campaign as researchers see them: what each did, and whether they are held or excluded."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

import numpy as np
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.criteria import criteria_of
from app.designs.registry import design_of
from app.quality.checks import CheckMet, answered
from app.quality.gather import annotators_since
from app.quality.work_time import work_seconds
from app.record.news import Watermark, look
from app.record.stream import COUNTING, DECIDED, Response, values_by

Sorting = Literal["name", "answers", "seconds", "last", "standing"]

MOST_KEPT = 50  # campaigns
BINS = 10  # of the scale, in a histogram

# Until the first answer: who changed it took no longer.
SECONDS = "CASE WHEN r.replaces IS NULL THEN extract(epoch FROM r.received_at - h.issued_at)::float8 END"

# Of answers that were given here: nobody knows how long others took.
TIMED = "JOIN hits h ON h.campaign_id = r.campaign_id AND h.id = r.hit_id AND h.leader IS NOT NULL"

THEIRS = "FROM responses r WHERE r.campaign_id = a.campaign_id AND r.annotator_id = a.id"

# By what annotators can be sorted, who has most first: as little is read of everybody as that needs. Of seconds, which
# need every answer, the medians are kept.
KEYS: dict[Sorting, str] = {
    "name": "-a.number",
    "answers": f"(SELECT count(*) {THEIRS} AND r.replaces IS NULL)",
    "last": f"(SELECT max(r.received_at) {THEIRS})",
    "standing": "a.barred_at",
}

CHOSEN = """
    SELECT a.id, 'A' || a.number AS name, a.pseudonym, a.platform, a.created_at, a.barred, a.barred_reason,
           a.barred_by, a.barred_at, a.place
    FROM (
        SELECT a.*, row_number() OVER (ORDER BY {key} {way} NULLS LAST, a.id) AS place
        FROM (SELECT *, row_number() OVER (ORDER BY id) AS number FROM annotators WHERE campaign_id = :campaign) AS a
    ) AS a
    WHERE CAST(:only AS bigint[]) IS NULL OR a.id = ANY(:only)
    ORDER BY a.place LIMIT :limit OFFSET :offset
"""

LISTED = {
    (sorting, rising): text(CHOSEN.format(key=key, way="ASC" if rising else "DESC"))
    for sorting, key in KEYS.items()
    for rising in (False, True)
}

MEDIANS = text(f"""
    SELECT r.annotator_id AS id, percentile_cont(0.5) WITHIN GROUP (ORDER BY {SECONDS}) AS seconds
    FROM responses r {TIMED}
    WHERE r.campaign_id = :campaign AND r.replaces IS NULL
    AND (CAST(:those AS bigint[]) IS NULL OR r.annotator_id = ANY(:those)) GROUP BY 1
""")  # noqa: S608  (made of constants)

OF_ANSWERS = text(f"""
    SELECT a.id, count(*) FILTER (WHERE a.first) AS answers, count(*) FILTER (WHERE a.counts) AS counted,
           max(a.received_at) AS last_at,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY a.seconds) AS seconds,
           array_agg(a.seconds) FILTER (WHERE a.seconds IS NOT NULL) AS times, avg(a.changes) AS changes
    FROM (
        SELECT r.annotator_id AS id, r.received_at, r.counts, r.replaces IS NULL AS first, {SECONDS} AS seconds, (
            SELECT avg(CAST(c AS float8)) FROM jsonb_array_elements_text(r.telemetry -> 'changes') AS c) AS changes
        FROM (SELECT *, {COUNTING} AS counts FROM responses
              WHERE campaign_id = :campaign AND annotator_id = ANY(CAST(:those AS bigint[]))) AS r
        LEFT JOIN hits h ON h.campaign_id = :campaign AND h.id = r.hit_id AND h.leader IS NOT NULL
    ) AS a
    GROUP BY a.id
""")  # noqa: S608  (made of constants)

# How long a HIT usually takes, by the last answers.
USUAL_SECONDS = text(f"""
    SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY a.seconds) FROM (
        SELECT {SECONDS} AS seconds FROM responses r {TIMED}
        WHERE r.campaign_id = :campaign AND r.replaces IS NULL ORDER BY r.seq DESC LIMIT 1000
    ) AS a
""")  # noqa: S608  (made of constants)

VALUES = text(f"""
    SELECT r.annotator_id AS id, {values_by("0", "r")} AS values FROM responses r
    WHERE r.campaign_id = :campaign AND r.annotator_id = ANY(CAST(:those AS bigint[]))
""")  # noqa: S608  (made of constants)

FOUND = text("""
    SELECT annotator_id AS id, array_agg(said ORDER BY id) AS said FROM findings
    WHERE campaign_id = :campaign AND annotator_id = ANY(CAST(:those AS bigint[])) GROUP BY 1
""")

# Who did not agree, or did not pass the test, the last time that they tried.
LEFT = text("""
    SELECT id, min(outcome) AS outcome FROM (
        SELECT DISTINCT ON (annotator_id, step) annotator_id AS id, outcome FROM visits
        WHERE campaign_id = :campaign AND annotator_id = ANY(CAST(:those AS bigint[]))
        ORDER BY annotator_id, step, version DESC
    ) AS last WHERE outcome IN ('declined', 'failed') GROUP BY 1
""")

EVERYBODY = text("SELECT id FROM annotators WHERE campaign_id = :campaign")
COUNT = text("SELECT count(*) FROM annotators WHERE campaign_id = :campaign")

ANSWERS = text(f"""
    SELECT r.seq, r.hit_id, r.source, r.items, {values_by("0", "r")} AS values, r.received_at, r.counts,
           {SECONDS} AS seconds, d.kind, d.reason, d.decided_by, d.decided_at,
           ARRAY(SELECT i.external_id FROM unnest(r.items) WITH ORDINALITY AS shown (number, place)
                 JOIN items i ON i.campaign_id = :campaign AND i.number = shown.number ORDER BY place) AS ids
    FROM (SELECT *, {COUNTING} AS counts FROM responses
          WHERE campaign_id = :campaign AND annotator_id = :annotator
          ORDER BY seq DESC LIMIT :limit OFFSET :offset) AS r
    LEFT JOIN hits h ON h.campaign_id = :campaign AND h.id = r.hit_id AND h.leader IS NOT NULL
    LEFT JOIN LATERAL (
        SELECT * FROM decisions d WHERE d.campaign_id = :campaign AND d.response_seq = r.seq
        ORDER BY d.seq DESC LIMIT 1
    ) AS d ON true
    ORDER BY r.seq DESC
""")  # noqa: S608  (made of constants)

DECISIONS = text("""
    SELECT who, action, noted_at, after ->> 'reason' AS reason, after ->> 'answer' AS answer FROM audit_log
    WHERE campaign_id = :campaign AND about = :name AND split_part(action, '.', 1) = 'answers' ORDER BY id DESC
""")

BEHIND = text(f"""
    SELECT EXISTS (SELECT FROM decisions WHERE campaign_id = :campaign
                   AND seq > {DECIDED.format(campaign=":campaign")})
""")  # noqa: S608  (made of constants)


@dataclass(frozen=True)
class AnnotatorLine:
    """An annotator, with what they did; None where nobody knows.

    answers, counted: HITs, and of these those that no decision leaves out. seconds: the median from getting a HIT to
    its answer. hours: of work, as `work_seconds` counts it. pay_per_hour: what these paid, in the campaign's
    currency. changes: of an item's value after it was first given, the mean. histogram: how many of their values lie in
    each tenth of the scale, or of each class; empty where values are places in an order. checks, checks_met: gold
    and attention items that they answered, and those of them that are as expected. barred: held or excluded, why, by
    whom and when. findings: what rules saw. left: `declined` where they did not agree, `failed` where they did not pass
    the test.
    """

    id: int
    name: str
    pseudonym: str
    platform: str
    arrived_at: datetime
    barred: str | None
    barred_reason: str | None
    barred_by: str | None
    barred_at: datetime | None
    answers: int = 0
    counted: int = 0
    last_at: datetime | None = None
    seconds: float | None = None
    hours: float | None = None
    pay_per_hour: float | None = None
    changes: float | None = None
    histogram: Sequence[int] = ()
    checks: int = 0
    checks_met: int = 0
    findings: Sequence[str] = ()
    left: str | None = None


@dataclass(frozen=True)
class AnswerLine:
    """One answer of an annotator, with its values by the first criterion as they are said; seconds: None where nobody
    knows. excluded: why and by whom it is left out by itself. withdrawn: whether the annotator took it back.
    """

    seq: int
    received_at: datetime
    seconds: float | None
    judged: Sequence[tuple[str, str]]
    counts: bool
    excluded: str | None
    withdrawn: bool


@dataclass
class MedianSeconds:
    """Of all annotators of campaigns in which somebody asked who is quick, by campaign and annotator: with new answers
    only those are asked for again who gave some.
    """

    kept: dict[int, tuple[Watermark, dict[int, float]]] = field(default_factory=dict)

    async def newest(self, connection: AsyncConnection, campaign_id: int) -> Mapping[int, float]:
        """As of now."""
        before, known = self.kept.get(campaign_id, (None, {}))
        now, first, since = await look(connection, campaign_id, before)
        if first is not None:
            those = None if since is None else [*await annotators_since(connection, campaign_id, first)]
            rows = await connection.execute(MEDIANS, {"campaign": campaign_id, "those": those})
            known = ({} if since is None else known) | {row.id: row.seconds for row in rows}
        self.kept.pop(campaign_id, None)  # the newest at the end
        self.kept[campaign_id] = now, known
        while len(self.kept) > MOST_KEPT:
            del self.kept[next(iter(self.kept))]
        return known


async def count(connection: AsyncConnection, campaign_id: int) -> int:
    return int((await connection.execute(COUNT, {"campaign": campaign_id})).scalar_one())


async def behind(connection: AsyncConnection, campaign_id: int) -> bool:
    """Whether there are decisions that the posteriors do not follow yet."""
    return bool((await connection.execute(BEHIND, {"campaign": campaign_id})).scalar_one())


async def listed(
    connection: AsyncConnection,
    campaign: Any,
    *,
    sorting: Sorting = "name",
    rising: bool = False,
    limit: int,
    offset: int = 0,
    annotator: int | None = None,
    medians: MedianSeconds | None = None,
) -> list[AnnotatorLine]:
    """A page of annotators; of names A1 comes first. annotator: only this one, by their row's id. medians: what is
    known of them already.
    """
    only = None if annotator is None else [annotator]
    if sorting == "seconds":
        order = await by_seconds(connection, campaign.id, medians or MedianSeconds(), rising=rising)
        only, offset, sorting = order[offset : offset + limit], 0, "name"
    key = {"campaign": campaign.id, "limit": limit, "offset": offset, "only": only}
    lines = [line_of(row) for row in await connection.execute(LISTED[sorting, rising], key)]
    if only is not None:
        lines.sort(key=lambda line: only.index(line.id))
    those = {"campaign": campaign.id, "those": [line.id for line in lines]}
    told = {row.id: row for row in await connection.execute(OF_ANSWERS, those)}
    found = {row.id: row.said for row in await connection.execute(FOUND, those)}
    left = {row.id: row.outcome for row in await connection.execute(LEFT, those)}
    drawn = histograms(campaign, (await connection.execute(VALUES, those)).all())
    usual = (await connection.execute(USUAL_SECONDS, those)).scalar()
    done = [
        replace(completed(campaign, line, told, found, drawn, usual_seconds=usual), left=left.get(line.id))
        for line in lines
    ]
    return with_checks_met(done, await answered(connection, campaign, those["those"]))


async def by_seconds(
    connection: AsyncConnection, campaign_id: int, medians: MedianSeconds, *, rising: bool
) -> list[int]:
    """All annotators, by their rows' ids, who took longest first; those of whom nobody knows last."""
    known, way = await medians.newest(connection, campaign_id), 1 if rising else -1
    everybody = (await connection.execute(EVERYBODY, {"campaign": campaign_id})).scalars()
    return sorted(everybody, key=lambda one: (one not in known, way * known.get(one, 0.0), one))


def line_of(row: Row[Any]) -> AnnotatorLine:
    names = ("id", "name", "pseudonym", "platform", "barred", "barred_reason", "barred_by", "barred_at")
    return AnnotatorLine(arrived_at=row.created_at, **{name: getattr(row, name) for name in names})


def completed(
    campaign: Any,
    line: AnnotatorLine,
    told: Mapping[int, Row[Any]],
    found: Mapping[int, Sequence[str]],
    drawn: Mapping[int, Sequence[int]],
    *,
    usual_seconds: float | None,
) -> AnnotatorLine:
    names = ("answers", "counted", "last_at", "seconds", "changes")
    row = told.get(line.id)
    of = {name: getattr(row, name) for name in names} if row else {}
    if row and row.times:
        of["hours"] = work_seconds(row.times, usual_seconds) / 3600
        if of["hours"] and campaign.pay_per_hit:
            of["pay_per_hour"] = campaign.pay_per_hit * len(row.times) / of["hours"]
    return replace(line, **of, findings=found.get(line.id, ()), histogram=drawn.get(line.id, ()))


def with_checks_met(lines: Sequence[AnnotatorLine], checks: Sequence[CheckMet]) -> list[AnnotatorLine]:
    """With how many checks each has answered, and how many of these as expected."""
    of, met = Counter(one.annotator for one in checks), Counter(one.annotator for one in checks if one.met)
    return [replace(line, checks=of[line.id], checks_met=met[line.id]) for line in lines]


def histograms(campaign: Any, rows: Sequence[Row[Any]]) -> dict[int, list[int]]:
    """By annotator, how many of their values by the first criterion lie in each tenth, or of each class."""
    design = design_of(criteria_of(campaign)[0])
    if design.yields == "order" or not rows:
        return {}
    values = np.concatenate([np.asarray(row.values, np.float64) for row in rows])
    hit = np.repeat(np.arange(len(rows)), [len(row.values) for row in rows])
    who = np.repeat([row.id for row in rows], [len(row.values) for row in rows])
    said = ~np.isnan(values)
    values, hit, who = values[said], hit[said], who[said]
    bins = len(design.classes) or BINS
    place = values if design.classes else design.points(values, hit) * BINS / 100.0
    of = np.clip(place, 0, bins - 1).astype(np.intp)
    return {int(one): np.bincount(of[who == one], minlength=bins).tolist() for one in np.unique(who)}


async def decisions_on(connection: AsyncConnection, campaign_id: int, name: str) -> Sequence[Row[Any]]:
    """Return what was decided about an annotator, by their name on pages, and about their answers, newest first."""
    return (await connection.execute(DECISIONS, {"campaign": campaign_id, "name": name})).all()


async def answers_of(
    connection: AsyncConnection, campaign: Any, annotator: int, *, limit: int, offset: int = 0
) -> list[AnswerLine]:
    """An annotator's answers, by their row's id, the newest first."""
    key = {"campaign": campaign.id, "annotator": annotator, "limit": limit, "offset": offset}
    design = design_of(criteria_of(campaign)[0])
    return [answer_line(design, row) for row in await connection.execute(ANSWERS, key)]


def answer_line(design: Any, row: Row[Any]) -> AnswerLine:
    response = Response.of(row.seq, 0, row.items, row.values)
    said = {item: design.said(response.values, place) for place, item in enumerate(response.items)}
    excluded = f"{row.reason} ({row.decided_by})" if row.kind == "exclude" else None
    judged = [(name, said.get(item, "cannot be judged")) for item, name in zip(row.items, row.ids, strict=True)]
    return AnswerLine(row.seq, row.received_at, row.seconds, judged, row.counts, excluded, row.kind == "withdraw")
