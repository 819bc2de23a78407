"""A campaign ends with its last answer; whether an answer is the last is told from a few open items."""

import pytest

from app.annotation.hits import finish_check
from app.annotation.hits.finish_check import FinishCheck
from app.database.session import borrow_driver_in_transaction
from tests.annotation.hits.campaigns import NOW, create_running_campaign, execute_sql, fetch_value

STATUS = "SELECT status FROM campaigns WHERE id = :campaign"


@pytest.fixture(autouse=True)
def remembers_three(monkeypatch):
    monkeypatch.setattr(finish_check, "MAX_KNOWN_OPEN_ITEMS", 3)


async def status_after_answers(engine, campaign, complete, remembered):
    """The status after so many of the first items have all judgments."""
    judged = "UPDATE posteriors SET judgments = 3 WHERE campaign_id = :campaign AND subject < :complete"
    await execute_sql(engine, judged, campaign=campaign.id, complete=complete)
    async with borrow_driver_in_transaction(engine) as connection:
        await remembered.finish_if_complete(connection, campaign.id, now=NOW)
    return await fetch_value(engine, STATUS, campaign=campaign.id)


async def test_a_campaign_ends_when_fewer_items_are_open_than_a_hit_needs(engine):
    campaign, remembered = await create_running_campaign(engine, items=12), FinishCheck()
    for complete in range(12 - campaign.fewest_items + 1):
        assert await status_after_answers(engine, campaign, complete, remembered) == "running"
    assert await status_after_answers(engine, campaign, 12 - campaign.fewest_items + 1, remembered) == "finished"


async def test_items_that_opened_again_elsewhere_are_found(engine):
    campaign, remembered = await create_running_campaign(engine, items=12), FinishCheck()
    assert await status_after_answers(engine, campaign, 10, remembered) == "running"
    await execute_sql(engine, "UPDATE posteriors SET judgments = 0 WHERE subject < 10")
    await execute_sql(engine, "UPDATE posteriors SET settled = true WHERE subject >= 10")
    assert await status_after_answers(engine, campaign, 0, remembered) == "running"
