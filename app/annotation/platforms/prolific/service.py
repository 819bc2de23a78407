"""Prolific's API: its submissions, bonuses and notices, as `PlatformService` describes them.

Money is in hundredths everywhere but in lists of bonuses, where Prolific reads amounts of its currency.
"""

import asyncio
import base64
import hashlib
import hmac
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from itertools import count
from math import inf
from ssl import SSLContext
from typing import Any
from urllib.parse import quote

import httpx

from app.annotation.platforms.prolific.replies import (
    BalanceReply,
    CostReply,
    CreatedReply,
    RecommendationReply,
    SecretReply,
    SecretsReply,
    StudyReply,
    SubmissionPage,
    SubmissionReply,
    SubscriptionReply,
    SubscriptionsReply,
    TestStudyReply,
    read_document,
    seconds_to_wait_or_none,
    validate_reply_or_raise,
)
from app.annotation.platforms.service import (
    Balance,
    Bonus,
    CallNotMade,
    CallOutcomeUnknown,
    CallRefused,
    HourlyRecommendation,
    Notice,
    PlatformService,
    ServiceOfPlatform,
    StudyCost,
    StudyDraft,
    StudyState,
    Submission,
    Subscription,
    TestStudy,
)
from app.settings import Settings

CALL_TIMEOUT_SECONDS = 30.0  # for the whole exchange
SUBMISSIONS_PER_PAGE = 100
MAX_BONUSES_PER_CALL = 200
REJECTION_CATEGORIES = (
    *("TOO_QUICKLY", "TOO_SLOWLY", "FAILED_INSTRUCTIONS", "INCOMP_LONGITUDINAL", "FAILED_CHECK", "LOW_EFFORT"),
    *("MALINGERING", "NO_CODE", "BAD_CODE", "NO_DATA", "UNSUPP_DEVICE", "OTHER"),
)
DEVICES_BY_CHOICE = {
    "any": ["desktop", "tablet", "mobile"],
    "desktop": ["desktop"],
    "desktop and tablet": ["desktop", "tablet"],
    "mobile": ["mobile"],
}
CODE_TYPE_BY_OUTCOME = {"completed": "COMPLETED", "failed_checks": "FAILED_ATTENTION_CHECK"}
TRANSITION_BY_ACTION = {"publish": "PUBLISH", "pause": "PAUSE", "resume": "START"}
SIGNATURE_HEADER, TIMESTAMP_HEADER = "x-prolific-request-signature", "x-prolific-request-timestamp"
EVENT_HEADER, CONFIRMATION_HEADER = "x-event-id", "x-hook-secret"
SUBMISSION_EVENT = "submission.status.change"
SUBSCRIPTIONS_PER_PAGE = 100
MAX_WAITS_PER_CALL = 3  # for the limit of calls


@cache
def ssl_context_of_service() -> SSLContext:
    """Return a TLS context; it is cached, because reading the certificates takes tens of milliseconds."""
    return httpx.create_ssl_context()


class ProlificService(PlatformService):
    """Client of the API with one researcher's token.

    Args:
        base_url: Address of the API.
        token: The token.
        transport: Instead of the network.
        client: Client of a session, which keeps its connection; None outside of one.
        ends_at: End of the session in the event loop's time.

    """

    def __init__(
        self,
        base_url: str,
        token: str,
        transport: httpx.AsyncBaseTransport | None = None,
        *,
        client: httpx.AsyncClient | None = None,
        ends_at: float = inf,
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._token = token
        self._transport = transport
        self._client = client
        self._ends_at = ends_at
        self.is_cut_short = False

    @asynccontextmanager
    async def session(self, *, seconds: float) -> AsyncIterator[PlatformService]:
        ends_at = asyncio.get_running_loop().time() + seconds
        async with self._new_client() as client:
            yield ProlificService(self._base_url, self._token, self._transport, client=client, ends_at=ends_at)

    def _new_client(self) -> httpx.AsyncClient:
        verify = ssl_context_of_service() if self._base_url.startswith("https:") else False
        return httpx.AsyncClient(
            transport=self._transport, verify=verify, trust_env=False, timeout=CALL_TIMEOUT_SECONDS
        )

    async def refuse_unaccepted_token(self) -> None:
        await self._call_api_for_json("GET", "/users/me/")

    async def load_balance(self, workspace: str) -> Balance:
        reply = validate_reply_or_raise(
            BalanceReply, await self._call_api_for_json("GET", f"/workspaces/{quote_as_path_part(workspace)}/balance/")
        )
        return Balance(reply.available_balance, reply.currency_code)

    async def load_hourly_recommendation(self, workspace: str, currency: str) -> HourlyRecommendation:
        query = {"workspace_id": workspace, "currency": currency}
        reply = validate_reply_or_raise(
            RecommendationReply, await self._call_api_for_json("GET", "/reward-recommendations/", query=query)
        )
        return HourlyRecommendation(reply.min_reward_per_hour, reply.recommended_reward_per_hour)

    async def create_study_and_return_id(self, draft: StudyDraft) -> str:
        return validate_reply_or_raise(
            CreatedReply, await self._call_api_for_json("POST", "/studies/", api_body_of_study_draft(draft))
        ).id

    async def load_study_state(self, study: str) -> StudyState:
        reply = validate_reply_or_raise(
            StudyReply, await self._call_api_for_json("GET", f"/studies/{quote_as_path_part(study)}/")
        )
        return StudyState(reply.status.lower().replace("_", " "), reply.reward, reply.total_available_places)

    async def publish_pause_or_resume_study(self, study: str, action: str) -> None:
        body = {"action": TRANSITION_BY_ACTION[action]}
        await self._call_api_for_json("POST", f"/studies/{quote_as_path_part(study)}/transition/", body)

    async def increase_study_places_to(self, study: str, places: int) -> None:
        await self._call_api_for_json(
            "PATCH", f"/studies/{quote_as_path_part(study)}/", {"total_available_places": places}
        )

    async def load_study_cost(self, study: str) -> StudyCost:
        document = await self._call_api_for_json(
            "GET", f"/studies/{quote_as_path_part(study)}/cost/", query={"is_projected": "true"}
        )
        cost = validate_reply_or_raise(CostReply, document).rewards
        return StudyCost(
            rewards=round(cost.rewards.amount),
            fees=round(cost.fees.amount),
            tax=round(cost.tax.amount),
            currency=cost.rewards.currency,
        )

    async def add_test_participant(self, email: str) -> None:
        await self._call_api_for_json("POST", "/researchers/participants/", {"email": email})

    async def create_test_study(self, study: str) -> TestStudy:
        reply = validate_reply_or_raise(
            TestStudyReply, await self._call_api_for_json("POST", f"/studies/{quote_as_path_part(study)}/test-study/")
        )
        return TestStudy(reply.study_id, reply.study_url)

    async def load_or_create_notice_secret(self, workspace: str) -> str:
        """Return the workspace's secret. A new one would end the signatures of its other subscriptions."""
        document = await self._call_api_for_json("GET", "/hooks/secrets/", query={"workspace_id": workspace})
        if secrets := validate_reply_or_raise(SecretsReply, document).results:
            return secrets[0].value
        return validate_reply_or_raise(
            SecretReply, await self._call_api_for_json("POST", "/hooks/secrets/", {"workspace_id": workspace})
        ).value

    async def list_subscriptions(self, workspace: str) -> list[Subscription]:
        found: dict[str, Subscription] = {}
        for is_enabled in (True, False):
            async for row in self._iterate_subscriptions(workspace, is_enabled=is_enabled):
                if row.event_type == SUBMISSION_EVENT:
                    found[row.id] = Subscription(row.id, row.target_url, row.is_enabled)
        return [*found.values()]

    async def _iterate_subscriptions(self, workspace: str, *, is_enabled: bool) -> AsyncIterator[SubscriptionReply]:
        """Yield the subscriptions of all pages. A page that repeats the one before it is the last."""
        before: list[SubscriptionReply] = []
        for offset in count(0, SUBSCRIPTIONS_PER_PAGE):
            query = {
                "workspace_id": workspace,
                "is_enabled": str(is_enabled).lower(),
                "limit": SUBSCRIPTIONS_PER_PAGE,
                "offset": offset,
            }
            document = await self._call_api_for_json("GET", "/hooks/subscriptions/", query=query)
            page = validate_reply_or_raise(SubscriptionsReply, document).results
            if page == before:
                return
            for row in page:
                yield row
            if len(page) < SUBSCRIPTIONS_PER_PAGE:
                return
            before = page

    async def subscribe_to_submissions_and_return_id(self, workspace: str, address: str) -> str:
        body = {"event_type": SUBMISSION_EVENT, "target_url": address, "workspace_id": workspace}
        reply = await self._request("POST", "/hooks/subscriptions/", body)
        subscription = validate_reply_or_raise(SubscriptionReply, read_document(reply)).id
        secret = reply.headers.get(CONFIRMATION_HEADER, "")
        await self._call_api_for_json(
            "POST", f"/hooks/subscriptions/{quote_as_path_part(subscription)}/", {"secret": secret}
        )
        return subscription

    async def end_subscription(self, subscription: str) -> None:
        await self._call_api_for_json("DELETE", f"/hooks/subscriptions/{quote_as_path_part(subscription)}/")

    async def iterate_submissions(self, study: str) -> AsyncIterator[Submission]:
        """Yield all submissions of a study. A page past the end is 404, and so is a study that was deleted."""
        offset = 0
        while True:
            query = {"limit": SUBMISSIONS_PER_PAGE, "offset": offset}
            try:
                document = await self._call_api_for_json(
                    "GET", f"/studies/{quote_as_path_part(study)}/submissions/", query=query
                )
            except CallRefused as refused:
                if refused.status == 404 and offset:
                    return
                raise
            page = validate_reply_or_raise(SubmissionPage, document)
            for submission in page.results:
                yield submission.to_submission(study)
            if len(page.results) < SUBMISSIONS_PER_PAGE:
                return
            offset += len(page.results)

    async def load_submission(self, submission: str) -> Submission:
        document = await self._call_api_for_json(
            "GET", f"/submissions/{quote_as_path_part(submission)}/", ids=[submission]
        )
        return validate_reply_or_raise(SubmissionReply, document).to_submission()

    async def register_bonuses_and_return_bulk_id(self, study: str, bonuses: Sequence[Bonus]) -> str:
        body = {"study_id": study, "csv_bonuses": format_bonus_list(bonuses)}
        ids = [bonus.submission for bonus in bonuses]
        return validate_reply_or_raise(
            CreatedReply, await self._call_api_for_json("POST", "/submissions/bonus-payments/", body, ids=ids)
        ).id

    async def pay_bonuses(self, bulk_id: str) -> None:
        """Pay on a connection of its own: one that the service is just closing would leave the outcome unknown."""
        await self._call_api_for_json(
            "POST", f"/bulk-bonus-payments/{quote_as_path_part(bulk_id)}/pay/", keeps_connection=False
        )

    async def approve_submission(self, submission: str) -> None:
        """Approve on a connection of its own, as `pay_bonuses`, and at once or not at all: after a wait, the annotator
        may have been held.
        """
        path = f"/submissions/{quote_as_path_part(submission)}/transition/"
        await self._call_api_for_json("POST", path, {"action": "APPROVE"}, ids=[submission], keeps_connection=False)

    async def reject_submission(self, submission: str, category: str, message: str) -> None:
        body = {"action": "REJECT", "rejection_category": category, "message": message}
        await self._call_api_for_json(
            "POST", f"/submissions/{quote_as_path_part(submission)}/transition/", body, ids=[submission]
        )

    async def request_return(self, submission: str, reason: str) -> None:
        body = {"request_return_reasons": [reason]}
        await self._call_api_for_json(
            "POST", f"/submissions/{quote_as_path_part(submission)}/request-return/", body, ids=[submission]
        )

    async def _call_api_for_json(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        ids: Sequence[str] = (),
        keeps_connection: bool = True,
    ) -> Any:
        """Return the JSON of a successful reply, None if it has none. See `_request` for what it takes and raises."""
        return read_document(
            await self._request(method, path, body, query=query, keeps_connection=keeps_connection), ids
        )

    async def _request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        keeps_connection: bool = True,
    ) -> httpx.Response:
        """Return a reply. In a session, wait when there were too many calls, if the session lasts long enough.

        Args:
            method: The method.
            path: Path after the API's address.
            body: JSON of the call.
            query: Parameters of the address.
            keeps_connection: Whether the call may use the session's connection, and be made later in it.

        Raises:
            CallNotMade: There was no connection, or the session's time is over.
            CallOutcomeUnknown: It did not reply in time.

        """
        clock = asyncio.get_running_loop().time
        waits = 0
        while True:
            if clock() >= self._ends_at:
                self.is_cut_short = True
                raise CallNotMade("There are many calls to make. Easel continues soon.")
            reply = await self._request_once(method, path, body, query=query, keeps_connection=keeps_connection)
            wait = seconds_to_wait_or_none(reply) if keeps_connection and self._ends_at < inf else None
            if wait is None or waits == MAX_WAITS_PER_CALL or clock() + wait >= self._ends_at:
                return reply
            waits += 1
            await asyncio.sleep(wait)

    async def _request_once(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        *,
        query: Mapping[str, Any] | None,
        keeps_connection: bool,
    ) -> httpx.Response:
        headers = {"Authorization": f"Token {self._token}", "User-Agent": "Easel"}
        try:
            async with asyncio.timeout(CALL_TIMEOUT_SECONDS), AsyncExitStack() as stack:
                client = self._client if keeps_connection else None
                if client is None:
                    client = await stack.enter_async_context(self._new_client())
                return await client.request(method, self._base_url + path, json=body, params=query, headers=headers)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as problem:
            raise CallNotMade(f"Prolific could not be reached ({type(problem).__name__}).") from None
        except (httpx.HTTPError, TimeoutError) as problem:
            raise CallOutcomeUnknown(f"Prolific did not reply ({type(problem).__name__}).") from None


def api_body_of_study_draft(draft: StudyDraft) -> dict[str, Any]:
    """Return a draft as the API takes it. People have three times the estimated time."""
    body: dict[str, Any] = {
        "name": draft.name,
        "internal_name": draft.reference,
        "description": draft.description,
        "external_study_url": draft.url,
        "prolific_id_option": "url_parameters",
        "completion_codes": [
            {
                "code": code.code,
                "code_type": CODE_TYPE_BY_OUTCOME.get(code.outcome, "OTHER"),
                "actor": "participant",
                "actions": [{"action": "MANUALLY_REVIEW"}],
            }
            for code in draft.codes
        ],
        "total_available_places": draft.places,
        "estimated_completion_time": draft.minutes,
        "maximum_allowed_time": 3 * draft.minutes + 2,
        "reward": draft.reward,
        "device_compatibility": DEVICES_BY_CHOICE[draft.devices],
        "peripheral_requirements": [],
    }
    if draft.labels:
        body["study_labels"] = [*draft.labels]
    if draft.filter_set:
        body["filter_set_id"] = draft.filter_set
    groups = {"participant_group_allowlist": draft.groups, "participant_group_blocklist": draft.excluded_groups}
    filters = [{"filter_id": name, "selected_values": [*ids]} for name, ids in groups.items() if ids]
    return body | ({"filters": filters} if filters else {})


def quote_as_path_part(name: str) -> str:
    """Return an id as one part of a path."""
    return quote(name, safe="")


def format_bonus_list(bonuses: Sequence[Bonus]) -> str:
    """Return lines of an id and an amount in the currency, such as `65a0,4.25`."""
    return "".join(f"{bonus.submission},{format_hundredths(bonus.amount)}\n" for bonus in bonuses)


def format_hundredths(amount: int) -> str:
    return f"{amount // 100}.{amount % 100:02d}"


def study_id_of_prolific_arrival_or_empty(details: Mapping[str, str]) -> str:
    return details.get("STUDY_ID", "")


def prolific_notice_or_none_if_unsigned(secret: str, headers: Mapping[str, str], body: bytes) -> Notice | None:
    """Return the notice if its signature holds: HMAC-SHA256 of the timestamp and the body as it came.

    Its age does not matter: Prolific repeats a notice for up to 48 hours, and each counts once, by its id.
    """
    timestamp, event_id = headers.get(TIMESTAMP_HEADER, ""), headers.get(EVENT_HEADER, "")
    signature = prolific_signature(secret, timestamp, body)
    if not hmac.compare_digest(signature.encode(), headers.get(SIGNATURE_HEADER, "").encode()):
        return None
    return Notice(event_id or signature)


def prolific_signature(secret: str, timestamp: str, body: bytes) -> str:
    digest = hmac.new(secret.encode(), timestamp.encode() + body, hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


def make_prolific_service(settings: Settings, token: str) -> PlatformService:
    return ProlificService(settings.prolific_api_url, token)


SERVICE = ServiceOfPlatform(
    make_prolific_service,
    study_id_of_prolific_arrival_or_empty,
    MAX_BONUSES_PER_CALL,
    REJECTION_CATEGORIES,
    prolific_notice_or_none_if_unsigned,
    format_bonus_list,
)
