"""Bonuses become rows within the budget, whatever comes at once."""

import asyncio

import pytest

from app.errors import Conflict, Invalid
from app.payments.bonus_list import BonusLine, parse_bonus_list_or_refuse
from app.payments.connections import load_account_or_refuse
from app.payments.ledger import add_prepared_bonuses_and_count_new, load_ledger_totals
from tests.annotation.hits.campaigns import create_annotator, execute_sql, fetch_rows, fetch_value
from tests.payments.studies import create_study


async def test_a_hundred_lists_at_once_cannot_pass_the_budget(engine, prolific):
    study = await create_study(engine, prolific, budget=1_050)
    replies = await asyncio.gather(
        *(study.add(("A1", 100), key=f"list {number}") for number in range(100)), return_exceptions=True
    )
    refused = [reply for reply in replies if isinstance(reply, Conflict)]
    assert (replies.count(1), {refusal.code for refusal in refused}) == (10, {"over_budget"})
    assert await fetch_value(engine, "SELECT sum(amount) FROM payments WHERE kind = 'bonus'") == 1_000


async def test_a_list_that_passes_the_budget_is_stored_not_at_all(engine, prolific):
    study = await create_study(engine, prolific, budget=500)
    with pytest.raises(Conflict) as refused:
        await study.add(("A1", 300), ("A2", 300))
    assert refused.value.details == {"left": 500, "budget": 500}
    assert await study.states() == []


async def test_a_list_that_is_sent_twice_counts_once(engine, prolific):
    study = await create_study(engine, prolific)
    assert sorted(await asyncio.gather(*(study.add(("A1", 100)) for _ in range(5)))) == [0, 0, 0, 0, 1]


async def test_failed_and_cancelled_payments_leave_the_budget(engine, prolific):
    study = await create_study(engine, prolific, budget=500)
    await execute_sql(engine, "UPDATE assignments SET completed_at = NULL")  # no reward waits
    await study.add(("A1", 500))
    del prolific.submissions["s1"]
    await study.send()
    await study.add(("A2", 500), key="list 2")
    async with engine.begin() as connection:
        account = await load_account_or_refuse(connection, study.campaign)
        totals = await load_ledger_totals(connection, study.campaign.id, account)
    assert (totals.amount_counted_against_budget, totals.left) == (500, 0)


@pytest.mark.parametrize("name", ["A1", "p1", "s1", "pseudonym"])
async def test_a_person_is_found_by_each_of_their_names(engine, prolific, name):
    study = await create_study(engine, prolific)
    pseudonym = await fetch_value(engine, "SELECT pseudonym FROM annotators WHERE worker_id = 'p1'")
    await study.add((pseudonym if name == "pseudonym" else name, 100))
    assert await fetch_rows(engine, "SELECT submission, study, currency FROM payments") == [("s1", "study-1", "GBP")]


async def test_unknown_people_and_those_from_elsewhere_are_refused_by_their_line(engine, prolific):
    study = await create_study(engine, prolific)
    await create_annotator(engine, study.campaign, "eve", "link")
    for name, code in (("A9", "recipient_unknown"), ("A3", "recipient_elsewhere")):
        with pytest.raises(Invalid) as refused:
            await study.add(("A1", 100), (name, 100))
        assert (refused.value.code, refused.value.details["bonus"]) == (code, 2)


async def test_without_a_budget_nothing_is_stored(engine, prolific):
    study = await create_study(engine, prolific)
    other = await create_study(engine, prolific, name="Other", people=0)
    await other_without_budget(engine, other)
    with pytest.raises(Conflict) as refused:
        async with engine.begin() as connection:
            await add_prepared_bonuses_and_count_new(
                connection, other.campaign, [BonusLine("A1", 1, "")], request_key="k", now=study.clock.now
            )
    assert refused.value.code == "no_budget"


async def test_a_link_cannot_name_a_study_that_nobody_entered(engine, prolific):
    study = await create_study(engine, prolific)
    await create_annotator(engine, study.campaign, "eve", "prolific", assignment="s9", STUDY_ID="study-of-others")
    await execute_sql(engine, "UPDATE assignments SET completed_at = arrived_at")
    await study.add(("eve", 100))
    assert await fetch_rows(engine, "SELECT submission, study FROM payments") == [("s9", "study-1")]


async def other_without_budget(engine, study):
    await execute_sql(engine, "DELETE FROM payment_accounts WHERE campaign_id = :id", id=study.campaign.id)


def test_a_list_has_ids_amounts_and_reasons():
    listed = 'id,amount,reason\nA1,4.25,"careful, and quick"\n\ns2,1\n'
    assert parse_bonus_list_or_refuse(listed) == [BonusLine("A1", 425, "careful, and quick"), BonusLine("s2", 100, "")]


@pytest.mark.parametrize(
    ("listed", "code"),
    [
        ("", "bonuses_missing"),
        ("id,amount", "bonuses_missing"),
        ("A1", "bonus_line_unreadable"),
        ("A1,1,00,a", "bonus_line_unreadable"),
        ('"A1', "bonus_line_unreadable"),
        ('"A1,A2",1', "recipient_unreadable"),
        ("A 1,1", "recipient_unreadable"),
        ("A1,0", "amount_unreadable"),
        ("A1,-1", "amount_unreadable"),
        ("A1,1.005", "amount_unreadable"),
        ("A1,1e3", "amount_unreadable"),
        ("A1,١", "amount_unreadable"),
        ("A1,£1", "amount_unreadable"),
        ("A1,1000001", "amount_unreadable"),
        (f"A1,1,{'x' * 501}", "payment_reason_long"),
        ("A1,1\n" * 10_001, "too_many_bonuses"),
    ],
)
def test_a_list_that_cannot_be_read_is_refused(listed, code):
    with pytest.raises(Invalid) as refused:
        parse_bonus_list_or_refuse(listed)
    assert refused.value.code == code
