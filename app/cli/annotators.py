"""`easel annotators ...`: who takes part, who is held, and whose answers count."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from typing import Any, get_args

import click
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.cli.layout import aligned, terminal_width
from app.cli.running import as_json, in_transaction, now, on_engine, show_json
from app.database.campaign import campaign_by_slug
from app.quality import acting, shown
from app.quality import annotators as listing
from app.quality.annotators import AnnotatorLine, AnswerLine, Sorting
from app.quality.who_counts import annotator_named

TITLES = ("Name", "Answers", "Counted", "Median s", "Hours", "Changes", "Standing", "Findings")
reason_option = click.option("--reason", required=True, help="Why; kept with the decision and in the audit log.")


@click.group()
def annotators() -> None:
    """Annotators of a campaign: what each did; hold, exclude and restore them or single answers."""


@annotators.command("list")
@click.argument("slug")
@click.option("--sort", type=click.Choice(get_args(Sorting)), default="name", show_default=True, help="By what.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="How many at most.")
@as_json
def list_(slug: str, *, sort: Sorting, limit: int, as_json: bool) -> None:
    """The annotators of a campaign, who has most first."""

    async def work(connection: AsyncConnection) -> list[AnnotatorLine]:
        campaign = await campaign_by_slug(connection, slug)
        return await listing.listed(connection, campaign, sorting=sort, limit=limit)

    found = in_transaction(work)
    if as_json:
        show_json([asdict(line) for line in found])
        return
    rows = [cells(line) for line in found]
    click.echo("\n".join(aligned(TITLES, rows, right={1, 2, 3, 4, 5}, width=terminal_width())))


def cells(line: AnnotatorLine) -> list[str]:
    figures = ((line.seconds, ".0f"), (line.hours, ".2f"), (line.changes, ".1f"))
    words = ["-" if figure is None else format(figure, form) for figure, form in figures]
    return [
        line.name,
        str(line.answers),
        str(line.counted),
        *words,
        line.barred or "-",
        "; ".join(line.findings) or "-",
    ]


@annotators.command()
@click.argument("slug")
@click.option("--limit", type=click.IntRange(1), default=shown.MOST_SHOWN, show_default=True, help="How many at most.")
@as_json
def findings(slug: str, *, limit: int, as_json: bool) -> None:
    """What rules found of annotators, and did, the newest first."""

    async def work(connection: AsyncConnection) -> Sequence[Row[Any]]:
        campaign = await campaign_by_slug(connection, slug)
        return await shown.findings(connection, campaign.id, limit)

    found = in_transaction(work)
    if as_json:
        show_json([row._asdict() for row in found])
        return
    for row in found:
        stands = f", now {row.barred}" if row.barred else ""
        click.echo(f"{row.name}  {row.found_at:%Y-%m-%d %H:%M}  {row.rule} ({row.action}{stands})  {row.said}")


@annotators.command()
@click.argument("slug")
@click.argument("annotator")
@as_json
def answers(slug: str, annotator: str, *, as_json: bool) -> None:
    """All answers of ANNOTATOR, such as A7, the newest first."""

    async def work(connection: AsyncConnection) -> list[AnswerLine]:
        campaign: Row[Any] = await campaign_by_slug(connection, slug)
        number = await annotator_named(connection, campaign, annotator)
        return await listing.answers_of(connection, campaign, number, limit=1_000_000)

    found = in_transaction(work)
    if as_json:
        show_json([asdict(line) for line in found])
        return
    for line in found:
        judged = ", ".join(f"{item}: {said}" for item, said in line.judged)
        click.echo(f"{line.seq}  {line.received_at:%Y-%m-%d %H:%M}  {'' if line.counts else 'left out  '}{judged}")


def acts(action: str, does: str) -> None:
    """A command for one of the actions on annotators."""

    @annotators.command(action, help=does)
    @click.argument("slug")
    @click.argument("annotator")
    @reason_option
    def command(slug: str, annotator: str, reason: str) -> None:
        done(lambda engine: acting.on_annotator(engine, slug, annotator, action, reason=reason, now=now()))
        click.echo(f"{annotator} of {slug}: {action} done.")


acts("hold", "No further HITs for ANNOTATOR, such as A7; their answers count.")
acts("release", "Let ANNOTATOR, who is held, go on.")
acts("exclude", "No further HITs for ANNOTATOR, and none of their answers counts.")
acts("restore", "Let ANNOTATOR, who is excluded, go on, and count their answers again.")


def acts_on_answer(action: str, does: str) -> None:
    """A command for one of the actions on answers."""

    @annotators.command(f"{action}-answer", help=does)
    @click.argument("slug")
    @click.argument("answer", type=click.IntRange(1, 2**63 - 1))
    @reason_option
    def command(slug: str, answer: int, reason: str) -> None:
        done(lambda engine: acting.on_answer(engine, slug, answer, action, reason=reason, now=now()))
        click.echo(f"Answer {answer} of {slug}: {action} done.")


acts_on_answer("exclude", "Leave one answer out; ANSWER is its `seq` in the export of responses.")
acts_on_answer("restore", "Count one answer again.")


def done(decide: Callable[[AsyncEngine], Awaitable[Callable[[], Awaitable[None]]]]) -> None:
    """Decide, and let the posteriors follow."""

    async def work(engine: AsyncEngine) -> None:
        await (await decide(engine))()

    on_engine(work)
