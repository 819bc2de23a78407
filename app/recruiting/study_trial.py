"""A test study of a draft: a test participant works on the real pages, and nobody is paid."""

import re

from sqlalchemy.ext.asyncio import AsyncEngine

from app.annotation.platforms.service import TestStudy
from app.campaigns.summaries import load_campaign_with_progress_or_refuse
from app.database.audit_log import log_change
from app.errors import Conflict, Invalid
from app.payments.connections import ServiceConnector
from app.payments.service_calls import (
    call_service_or_refuse,
    load_account_with_token_or_refuse,
    service_with_token_of_account_or_refuse,
)

EMAIL_PATTERN = re.compile(r"[^@\s]{1,64}@[^@\s]{1,189}")


async def create_test_study_of_campaign_or_refuse(
    database: AsyncEngine, connector: ServiceConnector, slug: str, *, email: str = ""
) -> TestStudy:
    """Make a test study of a campaign's draft at the platform.

    Args:
        database: The database; calls are made outside of transactions.
        connector: Connector to the service.
        slug: The campaign's slug.
        email: Address of a person who becomes a test participant first; empty: there is one already.

    Raises:
        Conflict: `no_budget`, `no_token`, `study_missing`, `study_published`, `service_refused`: such as a workspace
            that may have no test participants.
        Invalid: `email_unreadable`.
        BadGateway: `service_unavailable`.

    """
    if email and not (EMAIL_PATTERN.fullmatch(email) and email.isprintable()):
        raise Invalid("This is not an e-mail address. Nothing was changed.", code="email_unreadable")
    async with database.begin() as connection:
        campaign = await load_campaign_with_progress_or_refuse(connection, slug)
        account = await load_account_with_token_or_refuse(connection, campaign)
    study = account.study
    if not study:
        raise Conflict("This campaign has no study yet. Draft one first.", code="study_missing")
    service = service_with_token_of_account_or_refuse(connector, account)
    state = await call_service_or_refuse(lambda: service.load_study_state(study))
    if state.status != "unpublished":
        raise Conflict(
            f"The study is {state.status}. Only a draft can be tested. Nothing was changed.", code="study_published"
        )
    if email:
        await call_service_or_refuse(lambda: service.add_test_participant(email))
    made = await call_service_or_refuse(lambda: service.create_test_study(study))
    async with database.begin() as connection:
        await log_change(connection, "payments.test_study", campaign, about=study)
    return made
