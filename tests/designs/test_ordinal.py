import numpy as np
import pytest
from hypothesis import given
from pydantic import ValidationError

from app.campaigns.setting_types import can_law_read_design
from app.campaigns.settings import CampaignSettings
from app.designs.ordinal import Ordinal
from app.inference.online.laws import ONLINE_LAWS
from tests.designs.labelled import FORMS, campaign, is_stored_or_refused, most_counted_classes
from tests.designs.recovery import assert_order_recovered, run_campaign_with_crowd

SEVEN = Ordinal(labels=("never", "-", "-", "sometimes", "-", "-", "always"))
LAWS = [name for name, law in ONLINE_LAWS.items() if can_law_read_design(Ordinal(), law)]


def test_a_hyphen_is_a_point_without_a_label_that_is_called_by_its_number():
    assert SEVEN.classes == ["never", "2", "3", "sometimes", "5", "6", "always"]
    assert SEVEN.value_range == (0.0, 6.0)
    assert SEVEN.task_message_for_first_page(campaign(5)) == (
        "You see 5 items at a time and choose one of 7 points for each, from “never” to “always”."
    )
    assert SEVEN.task_message_for_first_page(campaign(1)).startswith("You see one item at a time")


def test_keys_go_by_place_but_a_point_that_is_a_number_has_its_own_digit(subtests):
    for labels, keys in (
        (("no", "perhaps", "yes"), "123"),
        (tuple("abcdefghijk"), "1234567890-"),
        (tuple("12345"), "12345"),
        (tuple(map(str, range(11))), "0123456789-"),
        (("-1", "0", "1"), ["", "0", "1"]),
        (("1", "-", "3"), "123"),
    ):
        with subtests.test(labels=labels, keys=keys):
            assert Ordinal(labels=labels).keys == [*keys]


def test_points_that_nobody_could_tell_apart_are_refused(subtests):
    for labels, said in (
        (["yes"], "at least 2"),
        ([str(k) for k in range(12)], "at most 11"),
        (["yes", "no", "yes"], "each point needs a different label"),
        (["no", "-", "2"], "each point needs a different label"),
        (["-", "yes"], "the first and the last point need a label"),
        (["no", ""], "at least 1 character"),
        (["no", "x" * 81], "at most 80 characters"),
    ):
        with subtests.test(labels=labels, said=said), pytest.raises(ValidationError, match=said):
            CampaignSettings(name="A", question="B?", design="ordinal", design_settings={"labels": labels})


def test_it_is_told_which_points_there_are():
    assert Ordinal().allowed_values_text == "one of the 5 points, numbered from 0"


def test_people_choose_the_point_next_to_what_they_see():
    assert Ordinal().simulate_answer_values([-0.2, 0.1, 0.13, 0.5, 0.9, 1.7]) == [0.0, 0.0, 1.0, 2.0, 4.0, 4.0]


def test_points_have_even_distances():
    assert Ordinal().values_to_scale_shares([0.0, 1.0, 4.0]) == [0.0, 0.25, 1.0]
    assert Ordinal().values_to_points(np.array([0.0, 1.0, 4.0])).tolist() == [0.0, 25.0, 100.0]


@given(FORMS)
def test_whatever_a_browser_sends_is_an_answer_or_refused_with_a_reason(fields):
    is_stored_or_refused(Ordinal(), fields)


def test_laws_of_points_orders_and_classes_can_follow_it():
    assert {"easl", "ra", "trueskill", "easl-aware", "dirichlet"} <= set(LAWS)


@pytest.mark.parametrize("law", ["trueskill", "easl-aware"])
async def test_laws_of_scores_recover_the_order_and_replay_to_the_bit(engine, law):
    await assert_order_recovered(
        engine, await run_campaign_with_crowd(engine, design="ordinal", update_law=law, items_per_hit=4)
    )


async def test_counted_labels_recover_the_true_points(engine):
    await run_campaign_with_crowd(engine, design="ordinal", update_law="dirichlet", items_per_hit=4)
    truth = Ordinal().simulate_answer_values(np.linspace(0, 1, 24).tolist())
    off = np.abs(np.array(await most_counted_classes(engine)) - truth)
    assert np.mean(off == 0) > 0.7  # the others lie between two points
    assert off.max() == 1
