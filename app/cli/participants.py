"""`easel campaign participants`: the lists of people who may take part in a campaign, or may not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from app.annotation.onboarding.list_action import ListAction
from app.cli.run_command import current_utc_time, json_option, print_json, run_in_transaction
from app.cli.settings_options import READABLE_FILE
from app.cli.text_table import print_text_table

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from app.annotation.onboarding import participant_lists
    from app.annotation.onboarding.quotas import QuotaPlaces


@click.command("participants")
@click.argument("slug")
@click.argument("list_name", metavar="[LIST]", required=False, type=str)
@click.argument("file", metavar="[FILE]", required=False, type=READABLE_FILE)
@click.option(
    "--action",
    type=click.Choice(get_args(ListAction)),
    default="add",
    show_default=True,
    help="Whether to add the people in FILE, remove them, or replace the list with them.",
)
@click.option("--yes", "is_sure", is_flag=True, help="Let everyone take part if the allow list becomes empty.")
@json_option
def change_or_count_participants(
    slug: str, list_name: str | None, file: Path | None, *, action: ListAction, is_sure: bool, as_json: bool
) -> None:
    """Count the people who may take part in a campaign (LIST allow), who may not (block), in each group and each
    quota; or change one of these lists, such as the group experts. FILE has one id of the platform per line, or is a
    table with a column of ids.
    """
    from app.annotation.onboarding import participant_lists
    from app.annotation.onboarding.quotas import count_places_in_quotas
    from app.record.campaign import load_campaign_by_slug_or_refuse
    from app.settings import read_settings

    if (list_name is None) != (file is None):
        raise click.UsageError("Give both LIST and FILE to change a list, or neither to count the people.")
    people: list[str] = []
    if file is not None:
        with file.open("rb") as opened:
            people = participant_lists.read_person_ids(opened, file.name, max_mb=read_settings().max_upload_mb)

    async def work(
        connection: AsyncConnection,
    ) -> tuple[dict[str, participant_lists.ListedPeopleCount], list[QuotaPlaces]]:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        if list_name is not None:
            await participant_lists.change_participant_list_and_count_changes(
                connection,
                campaign,
                list_name,
                people,
                action,
                now=current_utc_time(),
                may_open_to_everyone=is_sure,
            )
        counts = await participant_lists.count_listed_people_by_list(connection, campaign.id)
        return counts, await count_places_in_quotas(connection, campaign)

    counts, quotas = run_in_transaction(work)
    if as_json:
        lists = {name: count._asdict() for name, count in counts.items()}
        print_json({**lists, "quotas": [quota._asdict() for quota in quotas]})
        return
    rows = [(name, f"{count.people:,}", f"{count.erased:,}") for name, count in counts.items()]
    print_text_table(("List", "People", "Erased"), rows, right_columns={1, 2})
    if quotas:
        quota_rows = [(f"{one.question} = {one.answer}", f"{one.people:,}", f"{one.limit:,}") for one in quotas]
        print_text_table(("Quota", "People", "Limit"), quota_rows, right_columns={1, 2})
