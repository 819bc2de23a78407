"""`easel person ...`: find a person in campaigns, write a copy of their data, and erase them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.cli.command_group import CommandGroup
from app.cli.commands import CommandFailure
from app.cli.run_command import current_utc_time, json_option, print_json, run_in_transaction, run_with_engine
from app.cli.text_table import print_text_table
from app.errors import NotFound, pluralize
from app.privacy.erasure_rule import RULE_SENTENCES

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from app.privacy.erasures import Erasure
    from app.privacy.person_search import Person

campaign_option = click.option("--campaign", "slug", help="Only this campaign. Default: all campaigns.")


@click.group(cls=CommandGroup)
def person() -> None:
    """One person's data: find them by an id, a name or a code; write a copy; erase them."""


@person.command("find")
@click.argument("term")
@campaign_option
@json_option
def find_person_in_campaigns(term: str, *, slug: str | None, as_json: bool) -> None:
    """Find the person whom TERM names: an id of a platform, a name or mail address of a personal link, an id on a
    list, a pseudonym, a name such as A7, a withdrawal code, or a receipt.
    """
    found = run_in_transaction(lambda connection: find_slugs_and_people_in_one_or_all_campaigns(connection, slug, term))
    if as_json:
        print_json([{"campaign": slug} | asdict(person) for slug, person in found])
    elif not found:
        click.echo("No one.")
    else:
        rows = [
            (slug, person.name, person.platform or "-", str(person.answers), person.receipt or "-")
            for slug, person in found
        ]
        print_text_table(["Campaign", "Name", "Platform", "Answers", "Receipt"], rows, right_columns={3})


async def find_slugs_and_people_in_one_or_all_campaigns(
    connection: AsyncConnection, slug: str | None, term: str
) -> list[tuple[str, Person]]:
    """Return the campaigns and annotators whom a term names, in one campaign or in all."""
    from app.privacy.person_search import find_people_and_log_search, load_slugs_of_campaigns
    from app.record.campaign import load_campaign_by_slug_or_refuse

    found = []
    for name in [slug] if slug else await load_slugs_of_campaigns(connection):
        campaign = await load_campaign_by_slug_or_refuse(connection, name)
        found += [(name, person) for person in await find_people_and_log_search(connection, campaign, term)]
    return found


@person.command("export")
@click.argument("slug")
@click.argument("term")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), required=True, help="ZIP file to write."
)
def export_person_to_zip(slug: str, term: str, *, output: Path) -> None:
    """Write a ZIP with all data about a person in campaign SLUG. TERM is as for `easel person find`."""
    from app.privacy.person_export import build_person_zip_and_log
    from app.privacy.person_search import load_only_person_or_refuse
    from app.record.campaign import load_campaign_by_slug_or_refuse

    async def work(connection: AsyncConnection) -> bytes:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        found = await load_only_person_or_refuse(connection, campaign, term)
        return await build_person_zip_and_log(connection, campaign, found, now=current_utc_time())

    content = run_in_transaction(work)
    try:
        output.write_bytes(content)
    except OSError as problem:
        raise CommandFailure(f"{output} cannot be written: {problem.strerror}. (file_not_written)") from problem
    click.echo(f"{output}: {len(content):,} bytes.")


@person.command("erase")
@click.argument("term")
@campaign_option
@click.option("--rule", type=click.Choice(list(RULE_SENTENCES)), required=True, help="What happens to the answers.")
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")
def erase_person_in_campaigns(term: str, *, slug: str | None, rule: str, is_sure: bool) -> None:
    """Erase the person whom TERM names, in all campaigns or in one. It cannot be undone.

    anonymise: ids, names and free text are erased; the judgments stay, and no score changes. remove: the answers, too.
    """
    from app.privacy.erasure_work import finish_erasures_that_are_due
    from app.privacy.erasures import erase_person_and_return_erasure

    found = run_in_transaction(lambda connection: find_slugs_and_people_in_one_or_all_campaigns(connection, slug, term))
    if not found:
        raise NotFound("No annotator has this id, name or code. Nothing was changed.", code="person_not_found")
    for name, person in found:
        click.echo(f"{name}: {person.name}, {pluralize(person.answers, 'answer')}")
    if not is_sure:
        click.confirm(f"Erase by the rule {rule}? It cannot be undone", abort=True)
    now = current_utc_time()

    async def erase(engine: AsyncEngine) -> None:
        for name, person in found:
            erasure = await erase_person_and_return_erasure(engine, name, person.name, rule, now=now)
            click.echo(f"{name}: erased. Receipt {erasure.receipt}.")
        await finish_erasures_that_are_due(engine, now=now)

    run_with_engine(erase)


@person.command("receipts")
@click.argument("slug")
@json_option
def print_receipts(slug: str, *, as_json: bool) -> None:
    """List the receipts of the erasures in campaign SLUG, newest first."""
    from app.privacy.erasures import list_erasures
    from app.record.campaign import load_campaign_by_slug_or_refuse

    async def work(connection: AsyncConnection) -> list[Erasure]:
        return [*await list_erasures(connection, await load_campaign_by_slug_or_refuse(connection, slug))]

    receipts = run_in_transaction(work)
    if as_json:
        print_json([asdict(erasure) for erasure in receipts])
        return
    rows = [
        (
            erasure.receipt,
            erasure.rule,
            f"{erasure.requested_at:%Y-%m-%d %H:%M}",
            erasure.requested_by,
            "yes" if erasure.finished_at else "not yet",
        )
        for erasure in receipts
    ]
    print_text_table(["Receipt", "Rule", "Requested (UTC)", "By", "Finished"], rows, right_columns=())
