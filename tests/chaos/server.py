"""The application as the chaos run starts it: with a clock that jumps, and with a deliberate fault if asked for one.

The product knows nothing of this: `EASEL_CHAOS_*` is read here alone. `python -m tests.chaos --fault NAME` and
`test_chaos.py` use the deliberate faults to prove that the checks find them, each by its own sign.
"""

import fcntl
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from math import inf, nextafter
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

from fastapi import FastAPI

from app import main
from app.annotation.hits import answer_storage, submission, visit_requests
from app.annotation.hits.answer_storage import AnswerReceipt
from app.annotation.hits.locked_answers import SubmittedAnswer
from app.database.session import Driver
from app.http import dependencies
from app.record.law_runner import LawRunner

CLOCK, FAULTS, COUNTS = "EASEL_CHAOS_CLOCK", "EASEL_CHAOS_FAULTS", "EASEL_CHAOS_COUNTS"
ANSWERS_PER_DROPPED_ONE, UPDATES_PER_WRONG_ONE = 500, 200
COUNTED_BEFORE_FIRST_FAULT = 20  # at most
# The line of `easel_lease_hits` that leaves out a HIT whose items have no room; `ignore_cap_sql` takes it out.
ROOM_CHECK = "CONTINUE WHEN NOT has_room;"


def jumping_clock(seconds_ahead: Path) -> Callable[[], datetime]:
    """Return a clock that goes so many seconds ahead, or behind, as a file says."""

    def utc_now() -> datetime:
        return datetime.now(UTC) + timedelta(seconds=float(seconds_ahead.read_text() or 0))

    return utc_now


def count_file(folder: Path, fault: str) -> Path:
    """Return the file in which all server processes count what a fault may change."""
    return folder / f"{fault}.count"


def count_and_tell_if_due(fault: str, every: int) -> bool:
    """Count one more in the file of all server processes; return True for one of so many."""
    with count_file(Path(os.environ[COUNTS]), fault).open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        number = int(file.read()) + 1
        file.seek(0)
        file.write(str(number))
        return number % every == 0


def count_before_first_fault(fault: str, rng: Random) -> int:
    """Return a count to begin with: the first fault comes early, and the next one as rarely as ever."""
    every = UPDATES_PER_WRONG_ONE if fault == "one-bit" else ANSWERS_PER_DROPPED_ONE
    return every - 1 - rng.randrange(COUNTED_BEFORE_FIRST_FAULT)


def replace_function(module: ModuleType, name: str, replacement: Callable[..., Any]) -> None:
    """Replace a function of a module, which must exist: otherwise the fault would be none."""
    assert name in vars(module), f"{module.__name__} calls no {name}"
    vars(module)[name] = replacement


def drop_an_answer() -> None:
    """Acknowledge 1 of 500 answers without storing it."""
    store_answers = submission.store_answers_and_return_outcomes

    async def store_most_answers(
        connection: Driver, campaign_id: int, answers: Sequence[SubmittedAnswer], **more: Any
    ) -> list[AnswerReceipt | Any]:
        dropped = {
            place for place in range(len(answers)) if count_and_tell_if_due("dropped-answer", ANSWERS_PER_DROPPED_ONE)
        }
        kept = [answer for place, answer in enumerate(answers) if place not in dropped]
        outcomes = iter(await store_answers(connection, campaign_id, kept, **more) if kept else ())
        return [
            AnswerReceipt(answer.hit_id, 10**9 + answer.hit_id) if place in dropped else next(outcomes)
            for place, answer in enumerate(answers)
        ]

    replace_function(visit_requests, store_answers.__name__, store_most_answers)  # by that name, requests call it


def ignore_cap() -> None:
    """Store answers about items that have all judgments; the database leases such items by `ignore_cap_sql`, too."""
    replace_function(answer_storage, "refuse_as_lease_lost_if_item_is_fully_judged", lambda *_: None)


def ignore_cap_sql(definition: str) -> str:
    """Return the definition of `easel_lease_hits` without its check under the lock."""
    assert ROOM_CHECK in definition
    return definition.replace(ROOM_CHECK, "")


def flip_a_bit() -> None:
    """Store 1 of 200 sets of posteriors with one number off by its last bit; later answers may round it away."""
    original = LawRunner.store_law_state_and_return_posterior_parameters

    async def store_almost(self: LawRunner) -> dict[str, Any]:
        if self.changed_items and count_and_tell_if_due("one-bit", UPDATES_PER_WRONG_ONE):
            item = next(iter(self.changed_items))
            first, *others = self.posteriors[item]
            self.posteriors[item] = [nextafter(first, inf), *others]
        return await original(self)

    LawRunner.store_law_state_and_return_posterior_parameters = store_almost  # type: ignore[method-assign]


DELIBERATE_FAULTS: dict[str, Callable[[], None]] = {
    "dropped-answer": drop_an_answer,
    "ignored-cap": ignore_cap,
    "one-bit": flip_a_bit,
}
SIGNS = {
    "dropped-answer": "is not stored",
    "ignored-cap": "open HITs of",
    "one-bit": "was in force, and no moment of a replay has it",
}
"""Words of the violation by which a fault is known."""


def create_app() -> FastAPI:
    """Return the application of one server process."""
    dependencies.utc_now = jumping_clock(Path(os.environ[CLOCK]))
    for fault in os.environ[FAULTS].split():
        DELIBERATE_FAULTS[fault]()
    return main.create_app()
