"""Whatever happens in whatever order, the record stays whole: visits, answers, changes, decisions, expiry, pauses."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy.ext.asyncio import AsyncEngine

from app.annotation.hits import submission, undo
from app.annotation.hits.answer_storage import AnswerReceipt
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.next_hit import HitOnPage, NextHit
from app.annotation.onboarding import consent, visit_progress
from app.annotation.platforms.assignments import AssignmentId
from app.campaigns import lifecycle, settings_edits
from app.database.bulk import open_snapshot
from app.database.session import borrow_autocommit_driver
from app.designs.answer import Answer
from app.designs.campaign import Campaign
from app.errors import Conflict, Gone, NotFound
from app.quality.actions import ANNOTATOR_ACTIONS
from app.record import replay, revisions
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.record.responses import COUNTING_RESPONSES_CONDITION
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    expire_leases,
    fetch_rows,
    find_or_lease_next_hit,
)

T = TypeVar("T")

# So few that most examples reach both limits: then one HIT more, or one judgment, would exceed them.
PEOPLE, ITEMS, WANTED, LIMIT = 4, 9, 2, 2
EXAMPLES = 20
REPLAYED_EVERY = 6  # steps
someone = st.integers(0, PEOPLE - 1)
scores = st.lists(st.integers(0, 100).map(float), min_size=3, max_size=3)
DECISIONS = ("hold", "release", "exclude", "restore")
EVENTS = (
    *("the text changes", "asks", "answers", "changes", "leases end", "decisions are acted on", "pause", "pause"),
    *DECISIONS,
)


class AnyOrder(RuleBasedStateMachine):
    """A small campaign that asks for consent, its annotators, and its owner. Nobody is asked about an item twice."""

    def __init__(self, engine: AsyncEngine, loop: asyncio.AbstractEventLoop, at_limits: list[bool]) -> None:
        super().__init__()
        self.engine, self.loop, self.at_limits = engine, loop, at_limits
        self.campaign: Any = None
        self.people: list[AssignmentId] = []
        self.rows: list[int] = []
        self.shown: dict[int, HitOnPage] = {}
        self.answers: dict[int, list[tuple[int, HitOnPage, list[float]]]] = defaultdict(list)  # with their numbers
        self.agreed: dict[int, int] = {}
        self.texts = 1
        self.barred: dict[int, str] = {}
        self.paused = self.brought_back = False
        self.steps = self.most_hits = self.most_judgments = 0

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout=60)

    @initialize(law=st.sampled_from(["easl", "easl-aware"]), caches=st.sampled_from([1, 2]))
    def begins(self, law: str, caches: int) -> None:
        self.run(self.launch(law))
        self.caches = [PosteriorCache() for _ in range(caches)]  # of so many processes

    async def launch(self, law: str) -> None:
        chosen: dict[str, Any] = {
            "judgments_per_item": WANTED,
            "items_per_hit": 3,
            "hits_per_annotator": LIMIT,
            "repeat_items": False,
        }
        self.campaign = await create_running_campaign(
            self.engine, items=ITEMS, update_law=law, consent="Version 1", **chosen
        )
        self.people = [await create_annotator(self.engine, self.campaign, f"person {k}") for k in range(PEOPLE)]
        found = await fetch_rows(
            self.engine, "SELECT id FROM annotators WHERE campaign_id = :id ORDER BY id", **self.key
        )
        self.rows = [row for (row,) in found]

    @property
    def key(self) -> dict[str, int]:
        return {"id": self.campaign.id}

    def agrees(self, who: int) -> None:
        async def agree() -> None:
            async with borrow_autocommit_driver(self.engine) as connection:
                here = await visit_progress.load_visit_or_refuse(connection, self.people[who])
                form = {"version": str(self.texts), "answer": "yes"}
                await visit_progress.store_result_of_open_step(connection, here, consent.CONSENT_STEP, form, now=NOW)

        self.run(agree())
        self.agreed[who] = self.texts

    def the_text_changes(self) -> None:
        async def change() -> None:
            async with self.engine.begin() as connection:
                text = {"consent": f"Version {self.texts + 1}"}
                await settings_edits.store_changed_settings_or_refuse(
                    connection, self.campaign.slug, lambda before: before.model_copy(update=text)
                )

        self.run(change())
        self.texts += 1

    def asks(self, who: int, process: int) -> None:
        work = self.run(
            find_or_lease_next_hit(self.engine, self.people[who], cache=self.caches[process % len(self.caches)])
        )
        if work.hit is None:
            assert self.may_be_told(who, work), work.reason
            return
        # A pause leaves annotators the HIT on their screen.
        assert not self.paused or work.hit.id == self.shown[who].id
        assert who not in self.barred
        assert self.agreed.get(who) == self.texts
        answered = {item for _, hit, _ in self.answers[who] for item in hit.items}
        assert answered.isdisjoint(work.hit.items)
        self.shown[who] = work.hit

    def may_be_told(self, who: int, work: NextHit) -> bool:
        """Whether a reason for no HIT can be true."""
        return {
            "paused": self.paused,
            "held": who in self.barred,
            "visit": self.agreed.get(who) != self.texts,
            "limit": len(self.hits(who)) == LIMIT,
        }.get(work.reason or "", work.reason in ("wait", "seen_all", "all_done"))

    def hits(self, who: int) -> set[int]:
        return {hit.id for _, hit, _ in self.answers[who]}

    def answers_what_was_shown(self, who: int, said: list[float]) -> None:
        """Also what others may have by now, and what was sent before."""
        if (hit := self.shown.get(who)) is None:
            return
        before = [seq for seq, other, _ in self.answers[who] if other.id == hit.id]
        try:
            receipt = self.run(self.submit(who, hit, said))
        except (Gone, Conflict, NotFound):
            assert not before
            return
        assert receipt.repeated == bool(before)
        if before:
            assert receipt.seq == before[0]
        else:
            self.answers[who].append((receipt.seq, hit, said))

    async def submit(self, who: int, hit: HitOnPage, said: list[float]) -> AnswerReceipt:
        answer = Answer(dict(zip(hit.items, said, strict=False)))
        async with borrow_autocommit_driver(self.engine) as connection:
            return await submission.store_answer_of_hit_and_return_receipt(
                connection, self.people[who], hit.id, answer, now=NOW
            )

    def changes_the_last_answer(self, who: int, said: list[float]) -> None:
        try:
            last, receipt = self.run(self.change(who, said))
        except Conflict:
            return
        seq, hit, _ = self.answers[who][-1]
        assert (last.seq, last.hit.id) == (seq, hit.id)
        assert who not in self.barred
        self.answers[who].append((receipt.seq, hit, said))

    async def change(self, who: int, said: list[float]) -> tuple[undo.ReopenedAnswer, AnswerReceipt]:
        async with borrow_autocommit_driver(self.engine) as connection:
            last = await undo.load_last_answer_for_change_or_refuse(connection, self.people[who], now=NOW)
            answer = Answer(dict(zip(last.hit.items, said, strict=False)))
            receipt = await undo.replace_answer_and_return_receipt_or_refuse(
                connection, self.people[who], last.hit.id, last.seq, answer, now=NOW
            )
        return last, receipt

    def leases_end(self) -> None:
        self.run(expire_leases(self.engine))

    def somebody_is(self, who: int, act: str) -> None:
        async def decide() -> None:
            async with self.engine.begin() as connection:
                await ANNOTATOR_ACTIONS[act](connection, self.campaign, self.rows[who], reason="Seen.", now=NOW)

        try:
            self.run(decide())
        except Conflict:
            return
        self.brought_back |= act == "restore"
        if act in ("hold", "exclude"):
            self.barred[who] = act
        else:
            self.barred.pop(who)

    def decisions_are_acted_on(self) -> None:
        self.run(revisions.switch_revision_if_it_misses_decisions(self.engine, self.campaign.id, now=NOW))
        newest = {hit.id: seq for who, given in self.answers.items() if not self.excluded(who) for seq, hit, _ in given}
        counted = f"SELECT hit_id, seq FROM responses WHERE campaign_id = :campaign AND {COUNTING_RESPONSES_CONDITION}"
        assert dict(self.run(fetch_rows(self.engine, counted, campaign=self.campaign.id))) == newest

    def excluded(self, who: int) -> bool:
        return self.barred.get(who) == "exclude"

    def the_campaign_pauses_or_goes_on(self) -> None:
        if self.turned("resume" if self.paused else "pause"):
            self.paused = not self.paused

    def turned(self, act: str) -> bool:
        """Whether the campaign was there to be paused or resumed: it may be finished."""

        async def turn() -> None:
            async with self.engine.begin() as connection:
                await lifecycle.change_campaign_status_or_refuse(connection, self.campaign.slug, act, now=NOW)

        try:
            self.run(turn())
        except Conflict:
            return False
        return True

    @rule(
        days=st.lists(st.tuples(someone, scores, st.none() | scores), max_size=3),
        then=st.sampled_from(EVENTS),
        who=someone,
        said=scores,
    )
    def people_work_and_then(
        self, days: list[tuple[int, list[float], list[float] | None]], then: str, who: int, said: list[float]
    ) -> None:
        """As most do most of the time, and some think better of it. One rule, so that no order leaves out the work."""
        for one, first, changed in days:
            if self.agreed.get(one) != self.texts:
                self.agrees(one)
            self.asks(one, one)
            self.answers_what_was_shown(one, first)
            if changed is not None:
                self.changes_the_last_answer(one, changed)
        events: dict[str, Callable[[], None]] = {
            "the text changes": self.the_text_changes,
            "asks": lambda: self.asks(who, 0),
            "answers": lambda: self.answers_what_was_shown(who, said),
            "changes": lambda: self.changes_the_last_answer(who, said),
            "leases end": self.leases_end,
            "decisions are acted on": self.decisions_are_acted_on,
            "pause": self.the_campaign_pauses_or_goes_on,
        }
        if then in events:
            events[then]()
        else:
            self.somebody_is(who, then)

    @invariant()
    def the_record_is_whole(self) -> None:
        if self.campaign is not None:
            self.run(self.check_record())

    @invariant()
    def posteriors_are_those_of_the_record(self) -> None:
        """Now and then: an error stays until the end, and to replay everything is most of the time."""
        self.steps += 1
        if self.campaign is not None and self.steps % REPLAYED_EVERY == 0:
            self.run(self.replayed())

    def teardown(self) -> None:
        if self.campaign is not None:
            self.run(self.replayed())
        self.at_limits.append((self.most_hits, self.most_judgments) >= (LIMIT, WANTED))

    async def replayed(self) -> None:
        async with open_snapshot(self.engine) as connection:
            row: Campaign = await load_campaign_by_slug_or_refuse(connection, self.campaign.slug)
            assert (await replay.verify_by_replay_or_refuse(connection, row)).has_no_mismatches

    async def check_record(self) -> None:
        stored = await fetch_rows(
            self.engine,
            "SELECT seq, hit_id, items, values FROM responses WHERE campaign_id = :id ORDER BY seq",
            **self.key,
        )
        said = sorted(
            (seq, hit.id, hit.items, given[: len(hit.items)])
            for all_of in self.answers.values()
            for seq, hit, given in all_of
        )
        assert [(seq, hit, items, given) for seq, hit, items, given in stored] == said
        await self.limits_hold()

    async def limits_hold(self) -> None:
        taken = (
            "SELECT coalesce(max(hits), 0) FROM (SELECT count(*) AS hits FROM hits h WHERE campaign_id = :id "
            "AND (closed_at IS NULL AND expires_at > now() OR EXISTS ("
            "    SELECT FROM responses r WHERE r.campaign_id = h.campaign_id AND r.hit_id = h.id)) "
            "GROUP BY annotator_id) AS of_annotators"
        )
        judgments = "SELECT max(judgments) FROM current_posteriors WHERE campaign_id = :id"
        most = await fetch_rows(self.engine, f"SELECT ({taken}), ({judgments})", **self.key)
        ((self.most_hits, self.most_judgments),) = most
        assert self.most_hits <= LIMIT
        assert self.brought_back or self.most_judgments <= WANTED


async def test_whatever_happens_the_record_is_whole(engine: AsyncEngine) -> None:
    no_shrinking = [phase for phase in Phase if phase is not Phase.shrink]  # it takes minutes
    chosen = settings(max_examples=EXAMPLES, stateful_step_count=25, deadline=None, phases=no_shrinking)
    at_limits: list[bool] = []
    machine: Any = partial(AnyOrder, engine, asyncio.get_running_loop(), at_limits)
    await asyncio.to_thread(run_state_machine_as_test, machine, settings=chosen)
    assert sum(at_limits) >= EXAMPLES / 2
