import time

import pytest

from app.crowd.annotators import WorkerTokens
from app.errors import Gone, Invalid
from tests.serving.campaigns import annotator, running, values


def test_a_token_says_whose_page_it_is():
    tokens = WorkerTokens("k" * 32, hours=1)
    assert tokens.read(tokens.issue(42)) == 42


def test_an_expired_token_is_refused_kindly():
    tokens = WorkerTokens("k" * 32, hours=-1)
    with pytest.raises(Gone) as refusal:
        tokens.read(tokens.issue(42))
    assert refusal.value.code == "token_expired"


@pytest.mark.parametrize("seconds_ahead", [2, 70, 400 * 86_400])
def test_a_token_of_a_machine_whose_clock_is_ahead_is_good(monkeypatch, seconds_ahead):
    tokens = WorkerTokens("k" * 32, hours=1)
    there = time.time() + seconds_ahead
    with monkeypatch.context() as ahead:
        ahead.setattr(time, "time", lambda: there)
        token = tokens.issue(42)
    assert tokens.read(token) == 42


@pytest.mark.parametrize("token", ["", "NDI", "42", "a.b.c"])
def test_a_damaged_token_is_refused(token):
    with pytest.raises(Invalid) as refusal:
        WorkerTokens("k" * 32, hours=1).read(token)
    assert refusal.value.code == "token_invalid"


def test_a_token_signed_with_another_key_is_refused():
    with pytest.raises(Invalid):
        WorkerTokens("k" * 32, hours=1).read(WorkerTokens("o" * 32, hours=1).issue(42))


async def test_an_annotator_keeps_their_pseudonym_over_visits(engine):
    campaign = await running(engine)
    first = await annotator(engine, campaign, "W1", "prolific", assignment="s1")
    second = await annotator(engine, campaign, "W1", "prolific", assignment="s2")
    assert first != second
    ((pseudonym, worker_id),) = await values(engine, "SELECT pseudonym, worker_id FROM annotators")
    assert worker_id not in pseudonym
