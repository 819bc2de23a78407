"""A campaign's way to pay: its budget, and the token with which Easel calls the platform's service."""

import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.annotation.platforms.registry import PLATFORMS
from app.annotation.platforms.service import CallRefused, PlatformService, ServiceFailure, ServiceOfPlatform
from app.database.audit_log import CURRENT_ACTOR, log_change
from app.database.session import leads_to_citus
from app.designs.campaign import Campaign
from app.errors import BadGateway, Conflict, Invalid, NotFound, shorten_echo
from app.payments.token_encryption import TokenCipher
from app.settings import SERVICE_TOKEN_PREFIX, Settings, service_token_from_environment_or_none

TOKEN_PATTERN = re.compile(r"[!-~]{8,500}")
ID_PATTERN = re.compile(r"[A-Za-z0-9_-]{0,100}")
MAX_STUDIES = 20

# SQL of a submission u: a person drafted or entered its study.
STUDY_IS_READ = """u.study IN (SELECT unnest(c.study || c.other_studies) FROM payment_accounts c
    WHERE c.campaign_id = u.campaign_id)"""

LOAD_ACCOUNT = text("SELECT * FROM payment_accounts WHERE campaign_id = :campaign")
FIND_ACCOUNT_BY_HOOK_KEY = text("SELECT * FROM payment_accounts WHERE hook_key = :key AND platform = :platform")
MAKE_ACCOUNT_DUE = text("""
    UPDATE payment_accounts SET due_at = :now WHERE campaign_id = :campaign AND due_at IS NOT NULL
""")

# A token that is not entered again stays; a new one is read at once. Where there is a token, only a workspace that was
# checked is stored: another person may have entered the token meanwhile.
STORE_ACCOUNT = text("""
    INSERT INTO payment_accounts AS a (campaign_id, platform, token, token_variable, workspace, currency, budget,
        hook_key, due_at, connected_by, connected_at, budget_covers_rewards)
    VALUES (:campaign, :platform, :token, CAST(:variable AS text), :workspace, :currency, :budget, :hook_key,
        CAST(:due_at AS timestamptz), :by, :now, true)
    ON CONFLICT (campaign_id) DO UPDATE SET
        token = CASE WHEN :has_new_token THEN excluded.token ELSE a.token END,
        token_variable = CASE WHEN :has_new_token THEN excluded.token_variable ELSE a.token_variable END,
        workspace = excluded.workspace, budget = excluded.budget,
        due_at = CASE WHEN :has_new_token OR a.token IS NOT NULL OR a.token_variable IS NOT NULL THEN :now END,
        problem = '', budget_covers_rewards = true, connected_by = excluded.connected_by,
        connected_at = excluded.connected_at
    WHERE a.currency = excluded.currency AND (
        :is_checked OR a.workspace = excluded.workspace OR (a.token IS NULL AND a.token_variable IS NULL))
    RETURNING campaign_id
""")

REMOVE_TOKEN = text("""
    UPDATE payment_accounts SET token = NULL, token_variable = NULL, hook_secret = NULL, due_at = NULL, problem = '',
        hook_subscription = '', hook_problem = ''
    WHERE campaign_id = :campaign AND (token IS NOT NULL OR token_variable IS NOT NULL)
""")

# Without a token, Easel neither approves submissions nor learns what became of them.
CANCEL_PREPARED_REWARDS_WITHOUT_TOKEN = text("""
    UPDATE payments SET state = 'cancelled', settled_at = :now, problem = 'Easel has no token any more.'
    WHERE campaign_id = :campaign AND kind = 'reward' AND state = 'prepared' AND EXISTS (
        SELECT 1 FROM payment_accounts c WHERE c.campaign_id = :campaign AND c.token IS NULL
        AND c.token_variable IS NULL)
""")

# Without a token, nothing would tell Easel that the service no longer lists them.
DELETE_SUBMISSIONS_OF_STRANGERS = text("""
    DELETE FROM submissions WHERE campaign_id = :campaign AND annotator_id IS NULL
""")


@dataclass(frozen=True, kw_only=True)
class ConnectionSettings:
    """How a campaign pays, as a researcher enters it.

    Attributes:
        token: The service's token; empty: it stays, or there is none.
        token_variable: Name of an environment variable that has the token; empty: likewise.
        workspace: Id of the workspace that pays; a token needs one.
        budget: In hundredths.

    """

    token: str = field(default="", repr=False)
    token_variable: str = ""
    workspace: str = ""
    budget: int


def service_platform_name() -> str:
    """Return the name of the platform that has a service."""
    return next(name for name, platform in PLATFORMS.items() if platform.service)


def platform_service_of_account(account: Row[Any]) -> ServiceOfPlatform:
    service = PLATFORMS[account.platform].service
    assert service is not None  # noqa: S101  (accounts are stored for such platforms only)
    return service


def has_token(account: Row[Any]) -> bool:
    return account.token is not None or account.token_variable is not None


def study_ids_of_account(account: Row[Any]) -> list[str]:
    """Return the studies that a person drafted or entered: Easel reads no others."""
    return [study for study in (account.study, *account.other_studies) if study]


def study_id_of_bonus(account: Row[Any], arrival: Mapping[str, str]) -> str:
    """Return the study that a person's bonus belongs to: the one their link names, if it is one of the campaign's.

    Links can be typed by anyone. Where nobody entered a study, payments are made by hand, and the link's is taken.
    """
    known_studies = study_ids_of_account(account)
    named_study = platform_service_of_account(account).study_of_arrival(arrival)
    return named_study if named_study in known_studies or not known_studies else known_studies[0]


def parse_study_ids_or_refuse(ids_text: str) -> list[str]:
    """Return the ids of studies in a text, each once. Raises `Invalid` (`service_id_unreadable`, `studies_many`)."""
    studies = [*dict.fromkeys(filter(None, re.split(r"[\s,;]+", ids_text)))]
    for study in studies:
        refuse_unreadable_service_id(study)
    if len(studies) > MAX_STUDIES:
        raise Invalid(
            f"These are {len(studies):,} studies; a campaign has at most {MAX_STUDIES}. Nothing was stored.",
            code="studies_many",
        )
    return studies


@dataclass(frozen=True)
class ServiceConnector:
    """Makes the service of an account from its token, which is nowhere else in plain text."""

    settings: Settings
    cipher: TokenCipher
    connect: Callable[[ServiceOfPlatform, str], PlatformService] | None = None  # instead of the platform's own

    def service_with_token_of_account(self, account: Row[Any]) -> PlatformService:
        """Return the service of an account. Raises `CallRefused` if its token cannot be read."""
        token = self._token_of_account_or_none(account)
        if token is None:
            raise CallRefused(
                "The token cannot be read: the server's secret key or environment changed. Enter it again."
            )
        return self.service_with_token(platform_service_of_account(account), token)

    def service_with_token(self, platform_service: ServiceOfPlatform, token: str) -> PlatformService:
        if self.connect is not None:
            return self.connect(platform_service, token)
        return platform_service.connect(self.settings, token)

    def hook_secret_or_none(self, account: Row[Any]) -> str | None:
        return None if account.hook_secret is None else self.cipher.decrypt_or_none(account.hook_secret)

    def _token_of_account_or_none(self, account: Row[Any]) -> str | None:
        if account.token_variable is not None:
            return service_token_from_environment_or_none(account.token_variable)
        return None if account.token is None else self.cipher.decrypt_or_none(account.token)


async def load_account_or_none(connection: AsyncConnection, campaign_id: int) -> Row[Any] | None:
    return (await connection.execute(LOAD_ACCOUNT, {"campaign": campaign_id})).one_or_none()


async def load_account_or_refuse(connection: AsyncConnection, campaign: Campaign) -> Row[Any]:
    """Return the campaign's account. Raises `Conflict` (`no_budget`)."""
    account = await load_account_or_none(connection, campaign.id)
    if account is None:
        raise Conflict("This campaign has no budget for payments yet. Set one first.", code="no_budget")
    return account


async def find_account_by_hook_key_or_refuse(connection: AsyncConnection, platform: str, key: str) -> Row[Any]:
    """Return the account with this key in the address for notices. Raises `NotFound`."""
    account = (await connection.execute(FIND_ACCOUNT_BY_HOOK_KEY, {"key": key, "platform": platform})).one_or_none()
    if account is None:
        raise NotFound("There is no such page.")
    return account


async def check_settings_returning_if_workspace_checked(
    connector: ServiceConnector, chosen: ConnectionSettings, campaign: Campaign, stored: Row[Any] | None
) -> bool:
    """Check what was entered, and the token and its workspace with the service. This makes calls, so no transaction is
    open.

    Args:
        connector: Connector to the service.
        chosen: What was entered.
        campaign: The campaign.
        stored: The account as it is stored.

    Returns:
        Whether the workspace was checked. One that stays, with its token, is not checked again.

    Raises:
        Invalid: `token_unreadable`, `token_twice`, `token_variable_unknown`, `service_id_unreadable`,
            `workspace_missing`, `currency_differs`, `currency_unknown`, `token_refused`.
        BadGateway: `service_unavailable`.

    """
    token = read_entered_token_or_refuse(chosen)
    is_connected = stored is not None and has_token(stored)
    if (token is not None or is_connected) and not chosen.workspace:
        raise Invalid(
            "Enter the id of the workspace that pays, too: its currency must be the campaign’s. Nothing was stored.",
            code="workspace_missing",
        )
    try:
        if token is not None:
            platform_service = PLATFORMS[service_platform_name()].service
            assert platform_service is not None  # noqa: S101  (it was found by it)
            service = connector.service_with_token(platform_service, token)
            await service.refuse_unaccepted_token()
        elif stored is not None and is_connected and stored.workspace != chosen.workspace:
            service = connector.service_with_token_of_account(stored)
        else:
            return False
        balance = await service.load_balance(chosen.workspace)
    except CallRefused as refused:
        raise Invalid(f"{refused.message} Nothing was stored.", code="token_refused") from None
    except ServiceFailure as failure:
        raise BadGateway(f"{failure.message} Nothing was stored.", code="service_unavailable") from None
    if not balance.currency:
        raise Invalid(
            "The platform does not say in which currency this workspace pays. Nothing was stored.",
            code="currency_unknown",
        )
    if balance.currency != campaign.currency:
        raise Invalid(
            f"The workspace pays in {balance.currency}, but this campaign pays in {campaign.currency}. "
            "Nothing was stored.",
            code="currency_differs",
        )
    return True


def read_entered_token_or_refuse(chosen: ConnectionSettings) -> str | None:
    """Return the token that was entered, or that of the named variable; None if neither was entered.

    Raises `Invalid`: `service_id_unreadable`, `token_twice`, `token_variable_unknown`, `token_unreadable`.
    """
    refuse_unreadable_service_id(chosen.workspace)
    if chosen.token and chosen.token_variable:
        raise Invalid("Enter a token or the name of a variable, not both. Nothing was stored.", code="token_twice")
    token = chosen.token or None
    if chosen.token_variable:
        token = service_token_from_environment_or_none(chosen.token_variable)
        if token is None:
            raise Invalid(
                f"The server has no environment variable of this name. Its name begins with {SERVICE_TOKEN_PREFIX}. "
                "Nothing was stored.",
                code="token_variable_unknown",
            )
    if token is not None and not TOKEN_PATTERN.fullmatch(token):
        raise Invalid(
            "This is not a token: copy it again, without spaces. Nothing was stored.", code="token_unreadable"
        )
    return token


def refuse_unreadable_service_id(service_id: str) -> None:
    """Raise `Invalid` (`service_id_unreadable`) if this can be no id of the platform."""
    if not ID_PATTERN.fullmatch(service_id):
        raise Invalid(
            f"“{shorten_echo(service_id)}” is not an id of the platform: it may contain only letters and "
            "digits. Nothing was stored.",
            code="service_id_unreadable",
        )


def refuse_payments_on_cluster(database: AsyncEngine) -> None:
    """Raise Conflict (`payments_on_cluster`) on a Citus cluster, which cannot compare rewards of several campaigns."""
    if leads_to_citus(database):
        raise Conflict(
            "Campaigns on a Citus cluster cannot have payments. Nothing was changed.", code="payments_on_cluster"
        )


async def check_and_store_payment_settings_or_refuse(
    database: AsyncEngine, connector: ServiceConnector, campaign: Campaign, chosen: ConnectionSettings, *, now: datetime
) -> None:
    """Check and store how a campaign pays, and log it without the token.

    Raises:
        Conflict: `currency_fixed`: the campaign's currency changed since its first payment; `connection_changed`;
            `payments_on_cluster`.
        Invalid: See `check_settings_returning_if_workspace_checked`.
        BadGateway: `service_unavailable`.

    """
    refuse_payments_on_cluster(database)
    async with database.begin() as connection:
        stored = await load_account_or_none(connection, campaign.id)
    is_checked = await check_settings_returning_if_workspace_checked(connector, chosen, campaign, stored)
    has_new_token = bool(chosen.token or chosen.token_variable)
    parameters = {
        "campaign": campaign.id,
        "platform": service_platform_name(),
        "token": connector.cipher.encrypt(chosen.token) if chosen.token else None,
        "variable": chosen.token_variable or None,
        "has_new_token": has_new_token,
        "is_checked": is_checked,
        "workspace": chosen.workspace,
        "currency": campaign.currency,
        "budget": chosen.budget,
        "hook_key": secrets.token_urlsafe(24),
        "due_at": now if has_new_token else None,
        "by": CURRENT_ACTOR.get().name,
        "now": now,
    }
    async with database.begin() as connection:
        before = await load_account_or_none(connection, campaign.id)
        if (await connection.execute(STORE_ACCOUNT, parameters)).one_or_none() is None:
            if (await load_account_or_refuse(connection, campaign)).currency == campaign.currency:
                raise Conflict(
                    "Someone else changed the token just now. Nothing was stored. Check the token and try again.",
                    code="connection_changed",
                )
            raise Conflict(
                "The campaign’s currency is no longer that of its payments. Nothing was stored.", code="currency_fixed"
            )
        await log_change(
            connection,
            "payments.connected",
            campaign,
            old_values=before and account_facts_for_audit_log(before),
            new_values=account_facts_for_audit_log(await load_account_or_refuse(connection, campaign)),
        )


def account_facts_for_audit_log(account: Row[Any]) -> dict[str, Any]:
    """Return facts of an account for the log: neither its token nor the name of the variable that has it."""
    token = "stored" if account.token else "in the environment" if account.token_variable else "none"
    return {"budget": account.budget, "currency": account.currency, "workspace": account.workspace, "token": token}


async def forget_token_and_submissions_of_strangers(
    connection: AsyncConnection, campaign: Campaign, *, now: datetime
) -> None:
    """Forget a campaign's token, and submissions of people who never came; its budget and payments stay, but for
    reserved rewards.
    """
    if (await connection.execute(REMOVE_TOKEN, {"campaign": campaign.id})).rowcount:
        await connection.execute(DELETE_SUBMISSIONS_OF_STRANGERS, {"campaign": campaign.id})
        await connection.execute(CANCEL_PREPARED_REWARDS_WITHOUT_TOKEN, {"campaign": campaign.id, "now": now})
        await log_change(connection, "payments.disconnected", campaign)
