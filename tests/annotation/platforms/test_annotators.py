import time
from datetime import UTC, datetime, timedelta

import pytest

from app.annotation.platforms.assignments import AssignmentId, WorkerTokens
from app.errors import Gone, Invalid
from tests.annotation.hits.campaigns import create_annotator, create_running_campaign, fetch_rows

MINE = AssignmentId(campaign_id=7, assignment_id=42)
TOKENS = WorkerTokens("k" * 32, hours=1)


def issued(tokens=TOKENS, platform="link", link_key="key"):
    return tokens.issue_or_reuse_token(platform, link_key, MINE)


def test_a_token_says_whose_page_it_is():
    assert TOKENS.read_token_or_refuse(issued(), "link", "key").assignment == MINE


@pytest.mark.parametrize(("platform", "link_key"), [("link", "another"), ("prolific", "key"), ("lin", "k/key")])
def test_a_token_is_good_for_its_own_campaign_and_platform_alone(platform, link_key):
    with pytest.raises(Invalid) as refusal:
        TOKENS.read_token_or_refuse(issued(), platform, link_key)
    assert refusal.value.code == "token_invalid"


def test_a_visit_keeps_its_token_for_some_minutes(monkeypatch):
    tokens, began = WorkerTokens("k" * 32, hours=1), time.time()
    texts = []
    for seconds in (0, 590, 610, -30):
        monkeypatch.setattr(time, "time", lambda seconds=seconds: began + seconds)
        texts.append(issued(tokens))
    first, same, renewed, clock_went_back = texts
    assert first == same
    assert len({first, renewed, clock_went_back}) == 3
    assert {tokens.read_token_or_refuse(token, "link", "key").assignment for token in texts} == {MINE}
    assert (
        tokens.issue_or_reuse_token("link", "key", AssignmentId(7, 42, datetime(2026, 3, 1, tzinfo=UTC))) not in texts
    )


def test_a_remembered_token_expires(monkeypatch):
    tokens, began = WorkerTokens("k" * 32, hours=1), time.time()
    with monkeypatch.context() as earlier:
        earlier.setattr(time, "time", lambda: began - 3597)
        token = issued(tokens)
    assert tokens.read_token_or_refuse(token, "link", "key").assignment == MINE
    time.sleep(4)
    with pytest.raises(Gone):
        tokens.read_token_or_refuse(token, "link", "key")


def test_an_expired_token_is_refused_kindly():
    tokens = WorkerTokens("k" * 32, hours=-1)
    with pytest.raises(Gone) as refusal:
        tokens.read_token_or_refuse(issued(tokens), "link", "key")
    assert refusal.value.code == "token_expired"


@pytest.mark.parametrize("seconds_ahead", [2, 70, 400 * 86_400])
def test_a_token_of_a_machine_whose_clock_is_ahead_is_good(monkeypatch, seconds_ahead):
    tokens = WorkerTokens("k" * 32, hours=1)
    there = time.time() + seconds_ahead
    with monkeypatch.context() as ahead:
        ahead.setattr(time, "time", lambda: there)
        token = issued(tokens)
    assert tokens.read_token_or_refuse(token, "link", "key").assignment == MINE


def test_a_token_says_when_its_assignment_was_made():
    arrived_at = datetime(2026, 3, 1, 9, 30, 0, 123457, tzinfo=UTC)
    token = TOKENS.issue_or_reuse_token("link", "key", AssignmentId(7, 42, arrived_at))
    held = TOKENS.read_token_or_refuse(token, "link", "key")
    assert (held.assignment, held.assignment.arrived_at) == (MINE, arrived_at)
    assert held.matches_arrival(arrived_at)
    assert not held.matches_arrival(arrived_at + timedelta(microseconds=1))
    assert not held.matches_arrival(arrived_at - timedelta(days=1))


def test_a_token_of_before_is_of_no_assignment_that_was_made_after_it(subtests):
    for seconds, good in ((-3600, True), (0, True), (4, True), (60, False), (86_400, False)):
        with subtests.test(seconds=seconds, good=good):
            held = TOKENS.read_token_or_refuse(issued(), "link", "key")
            assert held.matches_arrival(held.issued_at + timedelta(seconds=seconds)) is good


def test_a_damaged_token_is_refused(subtests):
    for token in ("", "NDI", "42", "a.b.c"):
        with subtests.test(token=token):
            with pytest.raises(Invalid) as refusal:
                TOKENS.read_token_or_refuse(token, "link", "key")
            assert refusal.value.code == "token_invalid"


def test_a_token_signed_with_another_key_is_refused():
    with pytest.raises(Invalid):
        TOKENS.read_token_or_refuse(issued(WorkerTokens("o" * 32, hours=1)), "link", "key")


async def test_an_annotator_keeps_their_pseudonym_over_visits(engine):
    campaign = await create_running_campaign(engine)
    first = await create_annotator(engine, campaign, "W1", "prolific", assignment="s1")
    second = await create_annotator(engine, campaign, "W1", "prolific", assignment="s2")
    assert first != second
    ((pseudonym, worker_id),) = await fetch_rows(engine, "SELECT pseudonym, worker_id FROM annotators")
    assert worker_id not in pseudonym
