"""Contract of a platform's service: submissions and money, and how sure it is that a call had an effect."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

from app.settings import Settings

SubmissionStatus = Literal[
    "reserved", "active", "awaiting", "approved", "rejected", "returned", "timed_out", "screened_out", "other"
]
ENDED_STATUSES: tuple[SubmissionStatus, ...] = ("returned", "timed_out", "rejected", "screened_out")
MIN_REJECTION_CHARACTERS = 100


class ServiceFailure(Exception):
    """A call to the service failed. The text is for researchers and has neither a token nor a person's id."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


class CallRefused(ServiceFailure):
    """The service refused the call, so it certainly had no effect, and would be refused again."""


class CallNotMade(ServiceFailure):
    """The call certainly had no effect, but may succeed later: no connection, no time, or too many calls."""


class CallOutcomeUnknown(ServiceFailure):
    """The call may have had its effect: a timeout, a lost connection, or an error of the service."""


@dataclass(frozen=True)
class Submission:
    """A submission as the service has it. `bonus_amounts` are in hundredths; None where a list leaves them out."""

    id: str
    participant: str
    study: str
    status: SubmissionStatus
    bonus_amounts: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Bonus:
    """A bonus for a submission, in hundredths of the currency."""

    submission: str
    amount: int


@dataclass(frozen=True)
class Balance:
    """Money of a workspace that can be spent, in hundredths."""

    available: int
    currency: str


@dataclass(frozen=True)
class Notice:
    """A signed message that something changed at the service."""

    event_id: str


@dataclass(frozen=True)
class HourlyRecommendation:
    """Pay per hour that the platform demands and recommends, in hundredths."""

    minimum: int
    recommended: int


@dataclass(frozen=True)
class StudyCode:
    """A code with which people of one outcome return."""

    code: str
    outcome: str


@dataclass(frozen=True)
class StudyDraft:
    """A study to make. `reward` is that of one person, in hundredths."""

    name: str
    description: str
    url: str
    reward: int
    minutes: int
    places: int
    codes: Sequence[StudyCode]
    reference: str


@dataclass(frozen=True)
class StudyState:
    """A study as the service has it. `status` is its own word for it."""

    status: str
    reward: int
    places: int


class PlatformService(Protocol):
    """Calls to the service with a researcher's token. All of them raise `ServiceFailure`.

    Attributes:
        is_cut_short: Whether a call was not made because the time of its session was over.

    """

    is_cut_short: bool

    def session(self, *, seconds: float) -> AbstractAsyncContextManager["PlatformService"]:
        """Yield the same service with one connection for many calls, which makes none after this time."""

    async def check_token(self) -> None:
        """Raise `CallRefused` if the service does not accept the token."""

    async def load_balance(self, workspace: str) -> Balance: ...

    async def load_hourly_recommendation(self, workspace: str, currency: str) -> HourlyRecommendation: ...

    async def create_study(self, draft: StudyDraft) -> str:
        """Make an unpublished study, and return its id."""

    async def load_study(self, study: str) -> StudyState: ...

    async def change_study(self, study: str, action: str) -> None:
        """Publish, pause or resume a study. A second publication is refused."""

    async def set_places(self, study: str, places: int) -> None:
        """Raise the number of places."""

    def iterate_submissions(self, study: str) -> AsyncIterator[Submission]:
        """Yield all submissions of a study, without their bonuses."""

    async def load_submission(self, submission: str) -> Submission:
        """Return a submission with its bonuses."""

    async def prepare_bonuses(self, study: str, bonuses: Sequence[Bonus]) -> str:
        """Register bonuses and return the id of the whole. This pays nothing."""

    async def pay_bonuses(self, bulk_id: str) -> None:
        """Pay registered bonuses. A second call pays them a second time."""

    async def approve_submission(self, submission: str) -> None:
        """Approve a submission, which pays its reward. A second call is refused."""

    async def reject_submission(self, submission: str, category: str, message: str) -> None: ...


@dataclass(frozen=True)
class ServiceOfPlatform:
    """How Easel reaches the service of a platform.

    Attributes:
        connect: Return the service for a token.
        study_of_arrival: Return the study that the details of an arrival name; empty if none.
        max_bonuses_per_call: Number of bonuses that one call may have.
        rejection_categories: Reasons that a rejection can have.
        read_notice: Return the notice in a request's headers and body; None if its signature is wrong.
        format_bonus_list: Return the text that the platform's own page takes to pay bonuses by hand.

    """

    connect: Callable[[Settings, str], PlatformService]
    study_of_arrival: Callable[[Mapping[str, str]], str]
    max_bonuses_per_call: int
    rejection_categories: Sequence[str]
    read_notice: Callable[[str, Mapping[str, str], bytes], Notice | None]
    format_bonus_list: Callable[[Sequence[Bonus]], str]
