"""`easel annotators ...`: list annotators and their answers, and hold, exclude or restore them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, get_args

import click

from app.cli.command_group import CommandGroup
from app.cli.run_command import current_utc_time, json_option, print_json, run_in_transaction, run_with_engine
from app.cli.text_table import print_text_table
from app.quality.listing_options import MAX_FINDINGS_SHOWN, AnnotatorSort

if TYPE_CHECKING:
    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from app.designs.campaign import Campaign
    from app.quality.annotator_answers import AnswerLine
    from app.quality.annotators import AnnotatorLine

ANNOTATOR_LIST_TITLES = ("Name", "Answers", "Counted", "Median s", "Hours", "Changes", "Standing", "Findings")
reason_option = click.option("--reason", required=True, help=("Reason; kept with the decision and in the audit log."))


@click.group(cls=CommandGroup)
def annotators() -> None:
    """Annotators of a campaign: list them; hold, exclude and restore them or individual answers."""


@annotators.command("list")
@click.argument("slug")
@click.option(
    "--sort", type=click.Choice(get_args(AnnotatorSort)), default="name", show_default=True, help="Column to sort by."
)
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="Maximum number of rows.")
@json_option
def print_annotators(slug: str, *, sort: AnnotatorSort, limit: int, as_json: bool) -> None:
    """List the annotators of a campaign. With --sort, the highest values come first."""
    from app.quality import annotators as listing
    from app.record.campaign import load_campaign_by_slug_or_refuse

    async def work(connection: AsyncConnection) -> list[AnnotatorLine]:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        return await listing.load_annotator_lines(connection, campaign, sorting=sort, limit=limit)

    lines = run_in_transaction(work)
    if as_json:
        print_json([asdict(line) for line in lines])
        return
    rows = [annotator_list_cells(line) for line in lines]
    print_text_table(ANNOTATOR_LIST_TITLES, rows, right_columns={1, 2, 3, 4, 5})


def annotator_list_cells(line: AnnotatorLine) -> list[str]:
    figures = ((line.seconds, ".0f"), (line.hours, ".2f"), (line.changes, ".1f"))
    figure_texts = ["-" if figure is None else format(figure, form) for figure, form in figures]
    return [
        line.name,
        str(line.answers),
        str(line.counted),
        *figure_texts,
        line.barred or "-",
        "; ".join(line.findings) or "-",
    ]


@annotators.command("findings")
@click.argument("slug")
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=MAX_FINDINGS_SHOWN,
    show_default=True,
    help="Maximum number of rows.",
)
@json_option
def print_quality_findings(slug: str, *, limit: int, as_json: bool) -> None:
    """List the findings of quality rules and the actions taken, newest first."""
    from app.quality import listings
    from app.record.campaign import load_campaign_by_slug_or_refuse

    async def work(connection: AsyncConnection) -> Sequence[Row[Any]]:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        return await listings.load_newest_findings(connection, campaign.id, limit)

    rows = run_in_transaction(work)
    if as_json:
        print_json([row._asdict() for row in rows])
        return
    for row in rows:
        stands = f", now {row.barred}" if row.barred else ""
        click.echo(f"{row.name}  {row.found_at:%Y-%m-%d %H:%M}  {row.rule} ({row.action}{stands})  {row.said}")


@annotators.command("answers")
@click.argument("slug")
@click.argument("annotator")
@json_option
def print_answers_of_annotator(slug: str, annotator: str, *, as_json: bool) -> None:
    """List all answers of ANNOTATOR, such as A7, newest first."""
    from app.quality.annotator_answers import load_answer_lines_of_annotator
    from app.quality.decisions import find_annotator_id_or_refuse
    from app.record.campaign import load_campaign_by_slug_or_refuse

    async def work(connection: AsyncConnection) -> list[AnswerLine]:
        campaign: Campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        annotator_id = await find_annotator_id_or_refuse(connection, campaign, annotator)
        return await load_answer_lines_of_annotator(connection, campaign, annotator_id, limit=1_000_000)

    lines = run_in_transaction(work)
    if as_json:
        print_json([asdict(line) for line in lines])
        return
    for line in lines:
        judged = ", ".join(f"{item}: {said}" for item, said in judged_items_with_all_answers(line))
        segment = f"{line.segment}  " if line.segment is not None else ""
        left_out = "" if line.counts else "left out  "
        click.echo(f"{line.seq}  {line.received_at:%Y-%m-%d %H:%M}  {left_out}{segment}{judged}")


def judged_items_with_all_answers(line: AnswerLine) -> list[tuple[str, str]]:
    """Return pairs of an item's id and the answers about it, named by their criteria if there are several."""
    if not line.by_criterion:
        return list(line.judged)
    answers = zip(*([f"{name} {said}" for said in texts] for name, texts in line.by_criterion.items()), strict=True)
    return [(item, " ".join(texts)) for (item, _), texts in zip(line.judged, answers, strict=True)]


def add_command_for_annotator_action(action: str, help_text: str) -> None:
    @annotators.command(action, help=help_text)
    @click.argument("slug")
    @click.argument("annotator")
    @reason_option
    def command(slug: str, annotator: str, reason: str) -> None:
        from app.quality import actions

        decide_and_revise_posteriors(
            lambda engine: actions.apply_annotator_decision_and_return_campaign_id(
                engine, slug, annotator, action, reason=reason, now=current_utc_time()
            )
        )
        click.echo(f"{annotator} of {slug}: {action} done.")


add_command_for_annotator_action("hold", "Give ANNOTATOR, such as A7, no further HITs. Their answers still count.")
add_command_for_annotator_action("release", "Let ANNOTATOR continue after a hold.")
add_command_for_annotator_action("exclude", "Give ANNOTATOR no further HITs, and do not count their answers.")
add_command_for_annotator_action("restore", "Let ANNOTATOR continue after an exclusion, and count their answers again.")


def add_command_for_answer_action(action: str, help_text: str) -> None:
    @annotators.command(f"{action}-answer", help=help_text)
    @click.argument("slug")
    @click.argument("answer", type=click.IntRange(1, 2**63 - 1))
    @reason_option
    def command(slug: str, answer: int, reason: str) -> None:
        from app.quality import actions

        decide_and_revise_posteriors(
            lambda engine: actions.apply_answer_decision_and_return_campaign_id(
                engine, slug, answer, action, reason=reason, now=current_utc_time()
            )
        )
        click.echo(f"Answer {answer} of {slug}: {action} done.")


add_command_for_answer_action("exclude", "Exclude one answer. ANSWER is its `seq` in the export of responses.")
add_command_for_answer_action("restore", "Count one answer again.")


def decide_and_revise_posteriors(decide: Callable[[AsyncEngine], Awaitable[int]]) -> None:
    """Apply a decision, and revise the posteriors of its campaign."""
    from app.record.revisions import switch_revision_if_it_misses_decisions

    async def work(engine: AsyncEngine) -> None:
        await switch_revision_if_it_misses_decisions(engine, await decide(engine), now=current_utc_time())

    run_with_engine(work)
