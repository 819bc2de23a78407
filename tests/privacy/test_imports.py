"""An import never brings erased people back."""

import io
from datetime import timedelta

import pytest

from app.errors import Conflict
from app.imports.responses_import import import_responses_of_file_and_return_receipt
from app.privacy.erasure_work import finish_open_erasures
from tests.annotation.hits.campaigns import NOW, create_running_campaign, fetch_value
from tests.privacy.people import erase_found, verification_is_clean

LATER = NOW + timedelta(hours=1)


def answers_file(*workers):
    rows = [f"h{worker},{worker},v{item},{10 * item}" for worker in workers for item in range(5)]
    return io.BytesIO("\n".join(["hit,annotator,item,value", *rows]).encode())


async def import_answers(engine, campaign, *workers):
    return await import_responses_of_file_and_return_receipt(
        engine, campaign.slug, answers_file(*workers), "answers.csv", now=LATER, max_mb=1
    )


@pytest.fixture
async def campaign(engine):
    found = await create_running_campaign(engine, judgments_per_item=9)
    await import_answers(engine, found, "Ann", "Ben")
    return found


@pytest.mark.parametrize("rule", ["anonymise", "remove"])
async def test_the_same_file_is_refused_after_its_people_were_erased(engine, campaign, rule):
    await erase_found(engine, campaign, "Ann", rule, now=LATER)
    await finish_open_erasures(engine, now=LATER)
    with pytest.raises(Conflict) as refusal:
        await import_answers(engine, campaign, "Ann", "Ben")
    assert refusal.value.code == "assignment_known"
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 2


async def test_others_in_the_file_are_imported_and_the_receipt_counts_the_erased(engine, campaign):
    await erase_found(engine, campaign, "Ann", "anonymise", now=LATER)
    receipt = await import_answers(engine, campaign, "Ann", "Ben", "Cleo")
    assert (receipt.erased, receipt.known, receipt.responses) == (1, 1, 1)
    assert await fetch_value(engine, "SELECT count(*) FROM annotators WHERE worker_id = 'Ann'") == 0
    assert await verification_is_clean(engine, campaign)


async def test_an_earlier_export_does_not_bring_a_person_back_under_the_pseudonym(engine, campaign):
    pseudonym = await fetch_value(engine, "SELECT pseudonym FROM annotators WHERE worker_id = 'Ann'")
    await erase_found(engine, campaign, "Ann", "remove", now=LATER)
    receipt = await import_answers(engine, campaign, pseudonym, "Cleo")
    assert (receipt.erased, receipt.responses) == (1, 1)
