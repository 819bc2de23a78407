from typing import Any

import numpy as np
import pytest
from hypothesis import given
from pydantic import ValidationError

from app.campaigns.setting_types import can_law_read_design
from app.campaigns.settings import CampaignSettings
from app.database.bulk import open_snapshot
from app.designs.categories import Categories
from app.inference.online.laws import ONLINE_LAWS
from app.record.replay import verify_by_replay_or_refuse
from tests.designs.labelled import FORMS, campaign, is_stored_or_refused, most_counted_classes
from tests.designs.recovery import run_campaign_with_crowd

SENSES = Categories(labels=("bank: a financial institution", "bank 2: at 10:30, by the river", "none of these"))


def test_what_stands_behind_the_first_colon_and_space_describes_a_label():
    assert [(one.label, one.description, one.key) for one in SENSES.options] == [
        ("bank", "a financial institution", "a"),
        ("bank 2", "at 10:30, by the river", "b"),
        ("none of these", "", "c"),
    ]
    assert SENSES.classes == ["bank", "bank 2", "none of these"]
    assert Categories(labels=("10:30", "11:00: late")).classes == ["10:30", "11:00"]


def test_annotators_are_told_how_many_labels_there_are():
    alone, four = SENSES.task_message_for_first_page(campaign(1)), SENSES.task_message_for_first_page(campaign(4))
    assert alone == "You see one item at a time and choose the best of 3 labels for it."
    assert four == "You see 4 items at a time and choose the best of 3 labels for each."


@pytest.mark.parametrize(("count", "searched", "last_key"), [(11, False, "k"), (12, True, "l"), (30, True, "4")])
def test_every_label_has_a_key_and_many_can_be_searched(count, searched, last_key):
    design = Categories(labels=tuple(f"label {k}" for k in range(count)))
    assert design.has_label_search == searched
    assert design.options[-1].key == last_key
    assert len({option.key for option in design.options}) == count


def test_labels_that_nobody_could_tell_apart_are_refused(subtests):
    for labels, said in (
        (["yes"], "at least 2"),
        ([str(k) for k in range(31)], "at most 30"),
        (["bank: money", "bank: river"], "each label can appear only once"),
        (["yes", ": nothing before it"], "a label needs 1 to 80 characters"),
        (["yes", "x" * 81], "a label needs 1 to 80 characters"),
        (["yes", "x" * 501], "at most 500"),
    ):
        with subtests.test(labels=labels, said=said), pytest.raises(ValidationError, match=said):
            CampaignSettings(name="A", question="B?", design="categories", design_settings={"labels": labels})


def test_labels_have_no_order_so_only_a_law_that_counts_them_can_follow():
    assert not SENSES.is_ordered
    assert [name for name, law in ONLINE_LAWS.items() if can_law_read_design(SENSES, law)] == ["dirichlet"]
    with pytest.raises(ValidationError, match=r"this law cannot read the answers of “Categories”; dirichlet can"):
        CampaignSettings(name="A", question="B?", design="categories", update_law="easl")


def test_a_prior_has_a_number_for_each_label():
    labels = {"labels": ["x", "y", "z"]}
    chosen: dict[str, Any] = {"name": "A", "question": "B?", "design": "categories", "design_settings": labels}
    assert CampaignSettings(**chosen, prior=[1, 1, 2]).prior == [1, 1, 2]
    with pytest.raises(ValidationError, match="this prior is not possible"):
        CampaignSettings(**chosen, prior=[1, 1])


@given(FORMS)
def test_whatever_a_browser_sends_is_an_answer_or_refused_with_a_reason(fields):
    is_stored_or_refused(SENSES, fields)


@pytest.mark.parametrize("many", [1, 3])
async def test_the_true_labels_are_recovered_and_replay_to_the_bit(engine, many):
    labels = ("low", "middle", "high", "highest")
    chosen = {"design_settings": {"labels": labels}, "items_per_hit": many}
    campaign = await run_campaign_with_crowd(engine, design="categories", **chosen)
    truth = Categories(labels=labels).simulate_answer_values(np.linspace(0, 1, 24).tolist())
    assert np.mean(np.array(await most_counted_classes(engine)) == truth) > 0.8
    async with open_snapshot(engine) as connection:
        assert (await verify_by_replay_or_refuse(connection, campaign)).has_no_mismatches
