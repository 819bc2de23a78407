"""A restored backup ends in the state that annotators last asked for: withdrawals, and withdrawals taken back."""

from datetime import timedelta

import pytest

from app.annotation.platforms.assignments import AssignmentId
from app.privacy.erasure_list import format_erasure_list, load_erasure_list
from app.privacy.erasure_reapplication import read_erasure_list, reapply_erasures_and_count_by_state
from app.privacy.erasure_work import finish_erasures_that_are_due
from app.privacy.erasures import erase_person_and_return_erasure
from app.privacy.withdrawal import undo_withdrawal_or_refuse, withdraw_annotator_and_return_erasure
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
)
from tests.privacy.people import answer_hits

HOUR = timedelta(hours=1)
DAY = timedelta(hours=24)
TABLES_OF_WISHES = ("erasures", "undone_withdrawals")


async def list_of_server(engine, tmp_path):
    """Return the list as it is read again from its file."""
    async with engine.connect() as connection:
        (tmp_path / "list.jsonl").write_text(format_erasure_list(await load_erasure_list(connection)))
    return await read_erasure_list(tmp_path / "list.jsonl")


async def copy_wishes(engine):
    """Return the rows that record annotators' requests, as a backup has them."""
    rows = {table: await fetch_rows(engine, f"SELECT to_jsonb(t)::text FROM {table} t") for table in TABLES_OF_WISHES}
    barred = await fetch_rows(engine, "SELECT barred, barred_reason FROM annotators ORDER BY id")
    return rows, barred[0]


async def bring_back(engine, wishes):
    """Restore these rows as a backup does."""
    rows, (barred, reason) = wishes
    for table, lines in rows.items():
        await execute_sql(engine, f"DELETE FROM {table}")
        for (line,) in lines:
            await execute_sql(
                engine,
                f"INSERT INTO {table} OVERRIDING SYSTEM VALUE "
                f"SELECT * FROM jsonb_populate_record(NULL::{table}, CAST(:line AS jsonb))",
                line=line,
            )
    await execute_sql(
        engine,
        "UPDATE annotators SET worker_id = 'ann', barred = :barred, barred_reason = :reason",
        barred=barred,
        reason=reason,
    )


@pytest.fixture
async def person(engine):
    campaign = await create_running_campaign(engine, withdrawal="self")
    assignment: AssignmentId = await create_annotator(engine, campaign, "ann", "prolific")
    await answer_hits(engine, assignment, 1)

    class Person:
        """An annotator who withdraws and takes it back."""

        async def withdraw(self, now):
            async with engine.begin() as connection:
                return await withdraw_annotator_and_return_erasure(
                    connection, campaign, assignment.assignment_id, now=now
                )

        async def take_back(self, now):
            async with engine.begin() as connection:
                await undo_withdrawal_or_refuse(connection, campaign, assignment.assignment_id, now=now)

        async def reason_without_hit(self):
            return (await find_or_lease_next_hit(engine, assignment)).reason

        async def be_erased(self, now):
            return await erase_person_and_return_erasure(engine, campaign.slug, "A1", "remove", now=now)

    return Person()


async def test_a_withdrawal_after_the_backup_is_open_again_with_its_receipt_and_time(engine, tmp_path, person):
    backup = await copy_wishes(engine)
    withdrawal = await person.withdraw(NOW)
    listed = await list_of_server(engine, tmp_path)
    await bring_back(engine, backup)
    assert (await reapply_erasures_and_count_by_state(engine, listed, now=NOW + HOUR)) == {"open": 1}
    assert await fetch_rows(engine, "SELECT receipt, due_at FROM erasures") == [(withdrawal.receipt, NOW + DAY)]
    assert await person.reason_without_hit() == "withdrawn"
    await person.take_back(NOW + 2 * HOUR)
    assert await person.reason_without_hit() is None


async def test_a_withdrawal_that_became_due_meanwhile_is_carried_out(engine, tmp_path, person):
    backup = await copy_wishes(engine)
    await person.withdraw(NOW)
    listed = await list_of_server(engine, tmp_path)
    await bring_back(engine, backup)
    await reapply_erasures_and_count_by_state(engine, listed, now=NOW + DAY)
    assert await fetch_value(engine, "SELECT worker_id LIKE 'erased:%' FROM annotators")


async def test_a_withdrawal_that_was_taken_back_after_the_backup_is_not_carried_out(engine, tmp_path, person):
    await person.withdraw(NOW)
    backup = await copy_wishes(engine)
    await person.take_back(NOW + HOUR)
    listed = await list_of_server(engine, tmp_path)
    await bring_back(engine, backup)
    assert await reapply_erasures_and_count_by_state(engine, listed, now=NOW + 2 * DAY) == {"undone": 1}
    assert await fetch_value(engine, "SELECT count(*) FROM erasures") == 0
    assert await fetch_value(engine, "SELECT worker_id FROM annotators") == "ann"
    assert await person.reason_without_hit() is None


async def test_the_last_of_several_wishes_counts(engine, tmp_path, person):
    await person.withdraw(NOW)
    backup = await copy_wishes(engine)
    await person.take_back(NOW + HOUR)
    second = await person.withdraw(NOW + 2 * HOUR)
    listed = await list_of_server(engine, tmp_path)
    await bring_back(engine, backup)
    assert await reapply_erasures_and_count_by_state(engine, listed, now=NOW + 3 * HOUR) == {"undone": 1, "open": 1}
    assert await fetch_rows(engine, "SELECT receipt, due_at FROM erasures") == [(second.receipt, NOW + 26 * HOUR)]


async def test_a_withdrawal_that_was_open_in_the_backup_is_erased_as_the_list_says(engine, tmp_path, person):
    await person.withdraw(NOW)
    backup = await copy_wishes(engine)
    erased = await person.be_erased(NOW + HOUR)
    listed = await list_of_server(engine, tmp_path)
    await bring_back(engine, backup)
    assert await reapply_erasures_and_count_by_state(engine, listed, now=NOW + 2 * HOUR) == {"erased": 1}
    assert await fetch_rows(engine, "SELECT receipt FROM erasures WHERE finished_at IS NOT NULL") == [(erased.receipt,)]


async def test_a_list_from_before_the_backup_changes_nothing(engine, tmp_path, person):
    await person.withdraw(NOW)
    older = await list_of_server(engine, tmp_path)
    await person.take_back(NOW + HOUR)
    assert await reapply_erasures_and_count_by_state(engine, older, now=NOW + 2 * HOUR) == {}
    assert await fetch_value(engine, "SELECT count(*) FROM erasures") == 0


async def test_the_list_of_a_restored_server_still_knows_what_was_taken_back(engine, tmp_path, person):
    before = await copy_wishes(engine)
    await person.withdraw(NOW)
    backup = await copy_wishes(engine)
    await person.take_back(NOW + HOUR)
    listed = await list_of_server(engine, tmp_path)
    await bring_back(engine, before)
    await reapply_erasures_and_count_by_state(engine, listed, now=NOW + 2 * HOUR)
    listed_again = await list_of_server(engine, tmp_path)
    await bring_back(engine, backup)
    await reapply_erasures_and_count_by_state(engine, listed_again, now=NOW + 2 * DAY)
    assert await fetch_value(engine, "SELECT worker_id FROM annotators") == "ann"


async def test_a_withdrawal_after_ids_were_erased_finds_the_person_by_the_former_id(engine, tmp_path, person):
    backup = await copy_wishes(engine)
    slug = await fetch_value(engine, "SELECT slug FROM campaigns")
    await erase_person_and_return_erasure(engine, slug, "A1", "anonymise", now=NOW)
    await finish_erasures_that_are_due(engine, now=NOW)
    withdrawal = await person.withdraw(NOW + HOUR)
    listed = await list_of_server(engine, tmp_path)
    await bring_back(engine, backup)
    assert await reapply_erasures_and_count_by_state(engine, listed, now=NOW + 2 * HOUR) == {"erased": 1, "open": 1}
    open_receipts = await fetch_rows(engine, "SELECT receipt FROM erasures WHERE identifiers_erased_at IS NULL")
    assert open_receipts == [(withdrawal.receipt,)]
