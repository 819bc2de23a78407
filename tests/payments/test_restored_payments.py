"""A restored backup pays nobody by itself: what it holds as unpaid may have been paid after it was made."""

from app.payments.restored_payments import hold_payments_after_restore_and_count_them
from tests.annotation.hits.campaigns import execute_sql, fetch_value
from tests.payments.studies import create_study, words

RESTORED = "Restored from a backup: check at the platform whether this was paid."


async def create_restored_study(engine, prolific):
    """One payment was told to be sent and paid after the backup, one was being sent during it."""
    study = await create_study(engine, prolific)
    await study.add(("A1", 425), ("A2", 100))
    prolific.pay_by_hand("s1", 425)
    await execute_sql(
        engine, "UPDATE payment_accounts SET send_through = (SELECT max(id) FROM payments), approves = true"
    )
    await execute_sql(
        engine,
        "UPDATE payments SET state = 'sending', batch = 'b', sending_at = :now, paid_before = 0 WHERE amount = 100",
        now=study.clock.now,
    )
    assert await hold_payments_after_restore_and_count_them(engine) == 2
    return study


async def test_nothing_is_paid_after_a_restore_until_a_person_sends_it(engine, prolific):
    study = await create_restored_study(engine, prolific)
    for _ in range(3):
        await study.work_again(minutes=10)
    assert await study.states() == ["prepared", "unknown"]
    assert await study.problems() == [RESTORED, RESTORED]
    assert prolific.paid == []
    assert {row["status"] for row in prolific.submissions.values()} == {"AWAITING REVIEW"}
    await study.send()
    assert await study.states() == ["sent", "unknown"]


async def test_a_payment_that_was_being_sent_at_the_backup_is_found_in_the_platforms_list(engine, prolific):
    study = await create_restored_study(engine, prolific)
    prolific.pay_by_hand("s2", 100)
    await study.work_again(minutes=10)
    assert await study.states() == ["prepared", "sent"]


async def test_payments_that_are_settled_stay_as_they_are(engine, prolific):
    study = await create_study(engine, prolific)
    await study.add(("A1", 425))
    await study.send()
    assert await hold_payments_after_restore_and_count_them(engine) == 0
    assert await study.states() == ["sent"]
    assert await study.problems() == [""]


async def test_the_page_warns_before_restored_payments_are_sent(researcher, engine, prolific):
    study = await create_restored_study(engine, prolific)
    page = words(await researcher.get(f"/admin/campaigns/{study.campaign.slug}/payments"))
    assert "1 payment is from a restored backup" in page
    assert RESTORED in page
    await execute_sql(engine, "UPDATE payments SET problem = ''")
    page = words(await researcher.get(f"/admin/campaigns/{study.campaign.slug}/payments"))
    assert "restored backup" not in page
    assert await fetch_value(engine, "SELECT count(*) FROM payments WHERE kind = 'bonus'") == 2
