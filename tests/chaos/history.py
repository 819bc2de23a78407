"""History of a round: the answers that the crowd sent, and which of them a server acknowledged."""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Outcome = Literal["unknown", "acknowledged", "refused"]


@dataclass
class SentAnswer:
    """An answer to a HIT, with the values in the order in which the items were shown, criterion after criterion.

    Attributes:
        seq: The number on the receipt; None if the door gives none.
        repeated: Whether the receipt says that the HIT had an answer before, so these values need not be stored.

    """

    slug: str
    hit: int
    values: Sequence[float]
    replaces: int | None = None
    outcome: Outcome = "unknown"
    seq: int | None = None
    repeated: bool = False

    @property
    def key(self) -> tuple[int, int | None]:
        """The place of the answer: its HIT, and the number of the answer that it replaces."""
        return self.hit, self.replaces


@dataclass
class Decision:
    """A decision of a campaign's owner about an annotator (`A7`) or an answer (its number)."""

    slug: str
    subject: str
    action: str
    outcome: Outcome = "unknown"


@dataclass
class History:
    """All of one round.

    Attributes:
        statuses: How many replies had which status; 0 for none.
        violations: What was seen to be wrong while the crowd worked, and found wrong afterwards.
        awaited: Words of violations that deliberate faults cause; the crowd works until each was noted.
        is_enough: Set once that is so, or at the first violation if none is awaited.
        first_violation_time: When the first one was noted, in seconds of the machine's clock; None if there is none.

    """

    answers: list[SentAnswer] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    awaited: Sequence[str] = ()
    is_enough: asyncio.Event = field(default_factory=asyncio.Event)
    first_violation_time: float | None = None

    def note_violations(self, found: Iterable[str]) -> None:
        """Keep what is wrong, and let the crowd stop if it is enough."""
        if noted := [problem for problem in found if problem not in self.violations]:
            self.violations += noted
            if all(any(words in problem for problem in self.violations) for words in self.awaited):
                self.is_enough.set()
            self.first_violation_time = self.first_violation_time or time.monotonic()

    def send(self, slug: str, hit: int, values: Sequence[float], replaces: int | None = None) -> SentAnswer:
        """Note an answer before it is sent: whatever happens then, it may be stored."""
        self.answers.append(answer := SentAnswer(slug, hit, values, replaces))
        return answer

    def decide(self, slug: str, subject: str, action: str) -> Decision:
        self.decisions.append(decision := Decision(slug, subject, action))
        return decision

    def count_status(self, status: int) -> None:
        self.statuses[status] = self.statuses.get(status, 0) + 1

    def acknowledged_answers(self) -> list[SentAnswer]:
        return [answer for answer in self.answers if answer.outcome == "acknowledged"]

    @property
    def acknowledged(self) -> int:
        return sum(not answer.repeated for answer in self.acknowledged_answers())

    def last_actions(self) -> Mapping[tuple[str, str], Decision]:
        """Return the last decision about each subject by its campaign."""
        return {(decision.slug, decision.subject): decision for decision in self.decisions}
