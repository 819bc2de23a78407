"""Contract of a platform's service: submissions and money, and how sure it is that a call had an effect."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from app.annotation.platforms.study_settings import StudyDevices
from app.settings import Settings

SubmissionStatus = Literal[
    "reserved",
    "active",
    "awaiting",
    "approved",
    "partially_approved",
    "rejected",
    "returned",
    "timed_out",
    "screened_out",
    "other",
]
ENDED_STATUSES: tuple[SubmissionStatus, ...] = ("returned", "timed_out", "rejected", "screened_out")
MIN_REJECTION_CHARACTERS = 100
WORDS_ABOUT_MISSING_MONEY = ("balance", "not enough", "insufficient", "funds")


def clean_service_text(text: str) -> str:
    """Return a text of the service as one line that the database can store: blanks stand for control characters,
    unpaired surrogates and line ends.
    """
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())


def clean_service_document(document: Any) -> Any:
    """Return a JSON document of the service with all of its texts clean, as `clean_service_text` has it."""
    if isinstance(document, str):
        return clean_service_text(document)
    if isinstance(document, list):
        return [clean_service_document(part) for part in document]
    if isinstance(document, dict):
        return {name: clean_service_document(part) for name, part in document.items()}
    return document


class ServiceFailure(Exception):
    """A call to the service failed. The text is for researchers and has neither a token nor a person's id.

    Args:
        message: Why.
        status: Status of the reply; None if there was none.
        retry_after_seconds: When the service wants to be called again; None if it does not say.

    """

    def __init__(self, message: str, status: int | None = None, *, retry_after_seconds: float | None = None) -> None:
        message = clean_service_text(message)
        super().__init__(message)
        self.message = message
        self.status = status
        self.retry_after_seconds = retry_after_seconds

    @property
    def is_about_rate(self) -> bool:
        """Whether there were too many calls, so that any call would fail now."""
        return self.status == 429

    @property
    def is_about_balance(self) -> bool:
        """Whether money is missing, so that other calls that pay would fail now, but not after it was added."""
        return self.status == 402 or any(word in self.message.lower() for word in WORDS_ABOUT_MISSING_MONEY)


class CallRefused(ServiceFailure):
    """The service refused the call, so it certainly had no effect, and would be refused again."""


class CallNotMade(ServiceFailure):
    """The call certainly had no effect, but may succeed later: no connection, no time, or too many calls."""


class CallOutcomeUnknown(ServiceFailure):
    """The call may have had its effect: a timeout, a lost connection, or an error of the service."""


@dataclass(frozen=True)
class Submission:
    """A submission as the service has it. Money is in hundredths.

    Attributes:
        bonus_amounts: Its bonuses; None where a list leaves them out.
        reward: Its own reward; None if the reply has none, so that it is the study's.

    """

    id: str
    participant: str
    study: str
    status: SubmissionStatus
    bonus_amounts: tuple[int, ...] | None = None
    reward: int | None = None


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
    """A study to make.

    Attributes:
        reward: Reward of one person, in hundredths.
        devices: Devices on which people can take part.
        filter_set: Id of the conditions that people must meet; None: none. It excludes groups.
        groups: Ids of the groups whose people alone may take part; empty: everyone.
        excluded_groups: Ids of the groups whose people may not take part.
        labels: Kinds of study, as the platform names them.

    """

    name: str
    description: str
    url: str
    reward: int
    minutes: int
    places: int
    codes: Sequence[StudyCode]
    reference: str
    devices: StudyDevices = "any"
    filter_set: str | None = None
    groups: Sequence[str] = ()
    excluded_groups: Sequence[str] = ()
    labels: Sequence[str] = ()


@dataclass(frozen=True)
class StudyState:
    """A study as the service has it. `status` is its own word for it."""

    status: str
    reward: int
    places: int


@dataclass(frozen=True)
class StudyCost:
    """Cost of all places of a study as the service computes it, in hundredths."""

    rewards: int
    fees: int
    tax: int
    currency: str

    @property
    def total(self) -> int:
        return self.rewards + self.fees + self.tax


@dataclass(frozen=True)
class TestStudy:
    """A copy of a study for one test participant, who works on it at this address."""

    __test__ = False  # for pytest, which would collect it
    study: str
    url: str


@dataclass(frozen=True)
class Subscription:
    """A subscription to the service's notices. The service disables one whose address fails for days."""

    id: str
    address: str
    is_enabled: bool


class PlatformService(Protocol):
    """Calls to the service with a researcher's token. All of them raise `ServiceFailure`.

    Attributes:
        is_cut_short: Whether a call was not made because the time of its session was over.

    """

    is_cut_short: bool

    def session(self, *, seconds: float) -> AbstractAsyncContextManager["PlatformService"]:
        """Yield the same service with one connection for many calls, which makes none after this time."""

    async def refuse_unaccepted_token(self) -> None:
        """Raise `CallRefused` if the service does not accept the token."""

    async def load_balance(self, workspace: str) -> Balance: ...

    async def load_hourly_recommendation(self, workspace: str, currency: str) -> HourlyRecommendation: ...

    async def create_study_and_return_id(self, draft: StudyDraft) -> str:
        """Make an unpublished study, and return its id."""

    async def load_study_state(self, study: str) -> StudyState: ...

    async def publish_pause_or_resume_study(self, study: str, action: str) -> None:
        """Publish, pause or resume a study. A second publication is refused."""

    async def increase_study_places_to(self, study: str, places: int) -> None:
        """Raise the number of places."""

    async def load_study_cost(self, study: str) -> StudyCost:
        """Return what all places of a study will cost."""

    async def add_test_participant(self, email: str) -> None:
        """Let the person with this address take part in test studies. Not every workspace may."""

    async def create_test_study(self, study: str) -> TestStudy:
        """Make a test study of a draft. It needs a test participant."""

    async def load_or_create_notice_secret(self, workspace: str) -> str:
        """Return the secret with which the service signs its notices; a workspace has one."""

    async def list_subscriptions(self, workspace: str) -> list[Subscription]:
        """Return the subscriptions of a workspace, disabled ones, too."""

    async def subscribe_to_submissions_and_return_id(self, workspace: str, address: str) -> str:
        """Let notices about submissions be sent to an address, and return the id of the confirmed subscription."""

    async def end_subscription(self, subscription: str) -> None: ...

    def iterate_submissions(self, study: str) -> AsyncIterator[Submission]:
        """Yield all submissions of a study, without their bonuses."""

    async def load_submission(self, submission: str) -> Submission:
        """Return a submission with its bonuses."""

    async def register_bonuses_and_return_bulk_id(self, study: str, bonuses: Sequence[Bonus]) -> str:
        """Register bonuses and return the id of the whole. This pays nothing."""

    async def pay_bonuses(self, bulk_id: str) -> None:
        """Pay registered bonuses. A second call pays them a second time."""

    async def approve_submission(self, submission: str) -> None:
        """Approve a submission, which pays its reward once: a second call is refused and pays nothing, so that an
        approval whose outcome is unclear is read back by the submission's status, and may be asked for again.
        """

    async def reject_submission(self, submission: str, category: str, message: str) -> None: ...

    async def request_return(self, submission: str, reason: str) -> None:
        """Ask the person to return a submission. It waits for its review until they do."""


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
