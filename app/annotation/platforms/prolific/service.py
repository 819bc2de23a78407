"""Prolific's API: its submissions, bonuses and notices, as `PlatformService` describes them.

Money is in hundredths everywhere but in lists of bonuses, where Prolific reads amounts of its currency.
"""

import asyncio
import base64
import hashlib
import hmac
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from math import inf
from ssl import SSLContext
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, Field, ValidationError

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
    StudyDraft,
    StudyState,
    Submission,
    SubmissionStatus,
)
from app.settings import Settings

CALL_TIMEOUT_SECONDS = 30.0  # for the whole exchange
SUBMISSIONS_PER_PAGE = 100
MAX_BONUSES_PER_CALL = 200
MAX_DETAIL_CHARACTERS = 300
PROLIFIC_ID_PATTERN = r"(?<![0-9a-fA-F])[0-9a-fA-F]{24}(?![0-9a-fA-F])"
STATUS_BY_PROLIFIC_NAME: dict[str, SubmissionStatus] = {
    "RESERVED": "reserved",
    "ACTIVE": "active",
    "AWAITING REVIEW": "awaiting",
    "APPROVED": "approved",
    "PARTIALLY APPROVED": "approved",
    "REJECTED": "rejected",
    "RETURNED": "returned",
    "TIMED OUT": "timed_out",
    "SCREENED OUT": "screened_out",
}
REJECTION_CATEGORIES = (
    *("TOO_QUICKLY", "TOO_SLOWLY", "FAILED_INSTRUCTIONS", "INCOMP_LONGITUDINAL", "FAILED_CHECK", "LOW_EFFORT"),
    *("MALINGERING", "NO_CODE", "BAD_CODE", "NO_DATA", "UNSUPP_DEVICE", "OTHER"),
)
CODE_TYPE_BY_OUTCOME = {"completed": "COMPLETED", "failed_checks": "FAILED_ATTENTION_CHECK"}
TRANSITION_BY_ACTION = {"publish": "PUBLISH", "pause": "PAUSE", "resume": "START"}
SIGNATURE_HEADER, TIMESTAMP_HEADER = "x-prolific-request-signature", "x-prolific-request-timestamp"
EVENT_HEADER = "x-event-id"


class SubmissionReply(BaseModel):
    """The part of a submission that Easel reads; network addresses are left out."""

    id: str
    participant_id: str = ""
    participant: str = ""
    study_id: str = ""
    study: str = ""
    status: str
    bonus_payments: list[int] | None = None

    def to_submission(self, study: str = "") -> Submission:
        return Submission(
            self.id,
            self.participant_id or self.participant,
            self.study_id or self.study or study,
            STATUS_BY_PROLIFIC_NAME.get(self.status.upper().replace("-", " ").replace("_", " "), "other"),
            None if self.bonus_payments is None else tuple(self.bonus_payments),
        )


class SubmissionPage(BaseModel):
    results: list[SubmissionReply]


class RecommendationReply(BaseModel):
    min_reward_per_hour: int
    recommended_reward_per_hour: int


class StudyReply(BaseModel):
    status: str
    reward: int
    total_available_places: int


class CreatedReply(BaseModel):
    id: str = Field(min_length=1)


class BalanceReply(BaseModel):
    currency_code: str = ""
    available_balance: int


R = TypeVar("R", bound=BaseModel)  # Python 3.11 has no other way


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

    async def check_token(self) -> None:
        await self._call("GET", "/users/me/")

    async def load_balance(self, workspace: str) -> Balance:
        reply = read_reply(BalanceReply, await self._call("GET", f"/workspaces/{path_part(workspace)}/balance/"))
        return Balance(reply.available_balance, reply.currency_code)

    async def load_hourly_recommendation(self, workspace: str, currency: str) -> HourlyRecommendation:
        query = {"workspace_id": workspace, "currency": currency}
        reply = read_reply(RecommendationReply, await self._call("GET", "/reward-recommendations/", query=query))
        return HourlyRecommendation(reply.min_reward_per_hour, reply.recommended_reward_per_hour)

    async def create_study(self, draft: StudyDraft) -> str:
        return read_reply(CreatedReply, await self._call("POST", "/studies/", study_body(draft))).id

    async def load_study(self, study: str) -> StudyState:
        reply = read_reply(StudyReply, await self._call("GET", f"/studies/{path_part(study)}/"))
        return StudyState(reply.status.lower().replace("_", " "), reply.reward, reply.total_available_places)

    async def change_study(self, study: str, action: str) -> None:
        body = {"action": TRANSITION_BY_ACTION[action]}
        await self._call("POST", f"/studies/{path_part(study)}/transition/", body)

    async def set_places(self, study: str, places: int) -> None:
        await self._call("PATCH", f"/studies/{path_part(study)}/", {"total_available_places": places})

    async def iterate_submissions(self, study: str) -> AsyncIterator[Submission]:
        """Yield all submissions of a study. A page past the end is 404, and so is a study that was deleted."""
        offset = 0
        while True:
            query = {"limit": SUBMISSIONS_PER_PAGE, "offset": offset}
            try:
                document = await self._call("GET", f"/studies/{path_part(study)}/submissions/", query=query)
            except CallRefused as refused:
                if refused.status == 404 and offset:
                    return
                raise
            page = read_reply(SubmissionPage, document)
            for submission in page.results:
                yield submission.to_submission(study)
            if len(page.results) < SUBMISSIONS_PER_PAGE:
                return
            offset += len(page.results)

    async def load_submission(self, submission: str) -> Submission:
        document = await self._call("GET", f"/submissions/{path_part(submission)}/", ids=[submission])
        return read_reply(SubmissionReply, document).to_submission()

    async def prepare_bonuses(self, study: str, bonuses: Sequence[Bonus]) -> str:
        body = {"study_id": study, "csv_bonuses": format_bonus_list(bonuses)}
        ids = [bonus.submission for bonus in bonuses]
        return read_reply(CreatedReply, await self._call("POST", "/submissions/bonus-payments/", body, ids=ids)).id

    async def pay_bonuses(self, bulk_id: str) -> None:
        """Pay on a connection of its own: one that the service is just closing would leave the outcome unknown."""
        await self._call("POST", f"/bulk-bonus-payments/{path_part(bulk_id)}/pay/", keeps_connection=False)

    async def approve_submission(self, submission: str) -> None:
        path = f"/submissions/{path_part(submission)}/transition/"
        await self._call("POST", path, {"action": "APPROVE"}, ids=[submission])

    async def reject_submission(self, submission: str, category: str, message: str) -> None:
        body = {"action": "REJECT", "rejection_category": category, "message": message}
        await self._call("POST", f"/submissions/{path_part(submission)}/transition/", body, ids=[submission])

    async def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        ids: Sequence[str] = (),
        keeps_connection: bool = True,
    ) -> Any:
        """Return the JSON of a successful reply, None if it has none.

        Args:
            method: The method.
            path: Path after the API's address.
            body: JSON of the call.
            query: Parameters of the address.
            ids: Ids of people's submissions in the call, which no message may have.
            keeps_connection: Whether the call may use the session's connection.

        Raises:
            CallRefused: The API refused the call (4xx).
            CallNotMade: There was no connection, or too many calls (429), or the session's time is over.
            CallOutcomeUnknown: It did not reply in time, failed (5xx), or its reply cannot be read.

        """
        if asyncio.get_running_loop().time() >= self._ends_at:
            self.is_cut_short = True
            raise CallNotMade("There are many calls to make. Easel goes on soon.")
        headers = {"Authorization": f"Token {self._token}", "User-Agent": "Easel"}
        try:
            async with asyncio.timeout(CALL_TIMEOUT_SECONDS), AsyncExitStack() as stack:
                client = self._client if keeps_connection else None
                if client is None:
                    client = await stack.enter_async_context(self._new_client())
                reply = await client.request(method, self._base_url + path, json=body, params=query, headers=headers)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as problem:
            raise CallNotMade(f"Prolific could not be reached ({type(problem).__name__}).") from None
        except (httpx.HTTPError, TimeoutError) as problem:
            raise CallOutcomeUnknown(f"Prolific did not reply ({type(problem).__name__}).") from None
        return read_document(reply, ids)


def read_document(reply: httpx.Response, ids: Sequence[str] = ()) -> Any:
    """Return the JSON of a reply, None if it is empty. Raises as `ProlificService._call` does."""
    status = reply.status_code
    if status == 429:
        raise CallNotMade("Prolific got too many calls. Easel tries again later.", status)
    if status == 401:
        raise CallRefused("Prolific does not accept the token. Enter a new one.", status)
    if 400 <= status < 500 and status != 408:
        raise CallRefused(
            f"Prolific refused this ({status}): {mask_ids(error_detail(reply), ids)[:MAX_DETAIL_CHARACTERS]}", status
        )
    if not 200 <= status < 300:
        raise CallOutcomeUnknown(f"Prolific failed with status {status}.", status)
    try:
        return reply.json() if reply.content else None
    except ValueError:
        raise CallOutcomeUnknown("Prolific sent a reply that is not JSON.", status) from None


def error_detail(reply: httpx.Response) -> str:
    """Return the reason in a reply, which is in one of three shapes: an error object, a message, or plain text."""
    try:
        document = reply.json()
    except ValueError:
        return reply.text.strip() or "no reason was given."
    parts = document.get("error", document) if isinstance(document, dict) else {}
    if not isinstance(parts, dict):
        parts = {"detail": parts}
    detail = parts.get("detail") or parts.get("message") or parts.get("title") or "no reason was given."
    return str(detail)


def mask_ids(text: str, ids: Sequence[str]) -> str:
    """Return a text without Prolific's ids of people and things, and without those that were sent to it."""
    sent = [rf"(?<![\w-]){re.escape(name)}(?![\w-])" for name in ids if name]
    return re.sub("|".join([PROLIFIC_ID_PATTERN, *sent]), "(id)", text)


def read_reply(shape: type[R], document: Any) -> R:
    """Return a reply in its shape. Raises `CallOutcomeUnknown` if it has another one."""
    try:
        return shape.model_validate(document)
    except ValidationError:
        raise CallOutcomeUnknown("Prolific sent a reply that Easel cannot read.") from None


def study_body(draft: StudyDraft) -> dict[str, Any]:
    """Return a draft as the API takes it. People have three times the estimated time."""
    return {
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
        "device_compatibility": ["desktop", "tablet", "mobile"],
        "peripheral_requirements": [],
    }


def path_part(name: str) -> str:
    """Return an id as one part of a path."""
    return quote(name, safe="")


def format_bonus_list(bonuses: Sequence[Bonus]) -> str:
    """Return lines of an id and an amount in the currency, such as `65a0,4.25`."""
    return "".join(f"{bonus.submission},{format_hundredths(bonus.amount)}\n" for bonus in bonuses)


def format_hundredths(amount: int) -> str:
    return f"{amount // 100}.{amount % 100:02d}"


def study_of_prolific_arrival(details: Mapping[str, str]) -> str:
    return details.get("STUDY_ID", "")


def read_prolific_notice(secret: str, headers: Mapping[str, str], body: bytes) -> Notice | None:
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


def connect_to_prolific(settings: Settings, token: str) -> PlatformService:
    return ProlificService(settings.prolific_api_url, token)


SERVICE = ServiceOfPlatform(
    connect_to_prolific,
    study_of_prolific_arrival,
    MAX_BONUSES_PER_CALL,
    REJECTION_CATEGORIES,
    read_prolific_notice,
    format_bonus_list,
)
