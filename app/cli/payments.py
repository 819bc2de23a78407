"""`easel payments ...`: the budget of a campaign, its bonuses, and what became of them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from app.cli.command_group import CommandGroup
from app.cli.run_command import (
    current_utc_time,
    given_or_likely_server_url,
    json_option,
    print_json,
    run_in_transaction,
    run_with_engine,
)
from app.cli.study import load_service_connector, url_option
from app.cli.text_table import print_text_table
from app.payments.payment_decision import DecisionOnPayment

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine


@click.group(cls=CommandGroup)
def payments() -> None:
    """Bonuses of a campaign: add them, let the server send them, decide about unclear ones, and list all payments."""


@payments.command("list")
@click.argument("slug")
@json_option
def print_payments(slug: str, *, as_json: bool) -> None:
    """List the bonuses and rewards of a campaign, unclear ones first."""
    from app.payments import ledger
    from app.payments.money import hundredths_text
    from app.record.campaign import load_campaign_by_slug_or_refuse

    async def work(connection: AsyncConnection) -> list[dict[str, str]]:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        return [
            {
                "id": str(row.id),
                "annotator": row.name,
                "kind": row.kind,
                "amount": hundredths_text(row.amount),
                "currency": row.currency,
                "state": row.state,
                "reason": row.reason,
            }
            for row in await ledger.list_payments(connection, campaign.id, limit=None)
        ]

    rows = run_in_transaction(work)
    if as_json:
        print_json(rows)
    elif not rows:
        click.echo("No payments.")
    else:
        titles = ["Id", "Annotator", "Kind", "Amount", "Currency", "State", "Reason"]
        print_text_table(titles, [list(row.values()) for row in rows], right_columns={0, 3})


@payments.command("add")
@click.argument("slug")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def add_bonuses_of_file(slug: str, file: Path) -> None:
    """Prepare the bonuses in FILE: a line for each with an annotator or id, an amount such as 4.25, and a reason.

    If you add the same file again, nothing changes.
    """
    from app.payments import ledger
    from app.payments.bonus_list import parse_bonus_list_or_refuse
    from app.record.campaign import load_campaign_by_slug_or_refuse

    content = file.read_bytes()
    lines = parse_bonus_list_or_refuse(content.decode("utf-8-sig", errors="replace"))

    async def work(connection: AsyncConnection) -> int:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        key = f"file {hashlib.sha256(content).hexdigest()}"
        return await ledger.add_prepared_bonuses_and_count_new(
            connection, campaign, lines, request_key=key, now=current_utc_time()
        )

    added = run_in_transaction(work)
    click.echo(f"{added:,} {bonus_noun(added)} added." if added else "These bonuses were added before.")


def bonus_noun(number: int) -> str:
    return "bonus" if number == 1 else "bonuses"


@payments.command("send")
@click.argument("slug")
def send_prepared_payments_of_campaign(slug: str) -> None:
    """Let the server send all bonuses that are prepared now. It does so within seconds, while it runs."""
    from app.payments.connections import load_account_or_refuse
    from app.payments.money import money_text
    from app.payments.send_request import load_prepared_bonuses, request_sending_of_prepared_payments_or_refuse
    from app.record.campaign import load_campaign_by_slug_or_refuse

    async def work(connection: AsyncConnection) -> str:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        await request_sending_of_prepared_payments_or_refuse(connection, campaign, now=current_utc_time())
        account = await load_account_or_refuse(connection, campaign)
        prepared = await load_prepared_bonuses(connection, campaign.id)
        return money_text(prepared.amount, account.currency)

    click.echo(f"The server sends {run_in_transaction(work)}. `easel payments list {slug}` shows what became of it.")


@payments.command("retry")
@click.argument("slug")
def retry_failed_payments_of_campaign(slug: str) -> None:
    """Send all failed bonuses again."""
    from app.payments import ledger
    from app.record.campaign import load_campaign_by_slug_or_refuse

    async def work(connection: AsyncConnection) -> int:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        return await ledger.retry_failed_payments_and_count_them(connection, campaign, now=current_utc_time())

    retried = run_in_transaction(work)
    click.echo(f"The server sends {retried:,} {bonus_noun(retried)} again.")


@payments.command("notices")
@click.argument("slug")
@click.option("--end", is_flag=True, help="End the notices instead.")
@click.option("--list", "lists", is_flag=True, help="Only list the subscriptions of the workspace.")
@url_option
def start_end_or_list_notice_subscriptions(slug: str, url: str | None, *, end: bool, lists: bool) -> None:
    """Let the platform tell the server at once when a submission changes. The server needs an https address."""
    from app.payments.notice_subscription import (
        end_notices_or_refuse,
        list_workspace_subscriptions_and_own_id,
        subscribe_to_notices_or_refuse,
    )
    from app.record.campaign import load_campaign_by_slug_or_refuse

    async def work(engine: AsyncEngine) -> list[str]:
        connector = await load_service_connector(engine)
        async with engine.begin() as connection:
            campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        if lists:
            found, _ = await list_workspace_subscriptions_and_own_id(engine, connector, campaign)
            return [f"{row.address} {'on' if row.is_enabled else 'disabled'}" for row in found] or ["No subscriptions."]
        if end:
            await end_notices_or_refuse(engine, connector, campaign)
            return ["No more notices come."]
        await subscribe_to_notices_or_refuse(engine, connector, campaign, given_or_likely_server_url(url))
        return ["The platform sends notices now."]

    click.echo("\n".join(run_with_engine(work)))


@payments.command("decide")
@click.argument("slug")
@click.argument("payment", type=click.IntRange(1, 2**63 - 1))
@click.argument("decision", type=click.Choice(get_args(DecisionOnPayment)))
def settle_unclear_payment_of_campaign(slug: str, payment: int, decision: str) -> None:
    """Decide about the unclear PAYMENT: say that it was sent, send it again, or cancel it."""
    from app.payments import ledger
    from app.record.campaign import load_campaign_by_slug_or_refuse

    async def work(connection: AsyncConnection) -> None:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        await ledger.store_decision_on_payment_or_refuse(
            connection, campaign, payment, decision, now=current_utc_time()
        )

    run_in_transaction(work)
    click.echo(f"Payment {payment} of {slug}: {decision} done.")
