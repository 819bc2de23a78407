import re
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy import stats
from scipy.special import expit

from app.analysis import scores
from app.analysis.available_methods import fit_scores_with_reading_notes
from app.analysis.load_answers import load_campaign_answers
from app.analysis.methods import SCORE_METHODS
from app.campaigns.setting_types import can_law_read_design
from app.campaigns.settings import CampaignSettings
from app.database.bulk import open_snapshot
from app.designs.answer import Answer, Form
from app.designs.magnitude import Magnitude, format_number_without_exponent
from app.designs.number_parsing import parse_localized_decimal_or_refuse
from app.errors import Invalid
from app.inference.ground.inestimable import Inestimable
from app.inference.online.laws import ONLINE_LAWS
from tests.analysis.answers import answers
from tests.annotation.hits.campaigns import create_running_campaign, fetch_rows
from tests.conftest import http_client
from tests.designs.recovery import assert_order_recovered, run_campaign_with_crowd

BESIDE_100 = Magnitude(reference="walk")
LAWS = [name for name, law in ONLINE_LAWS.items() if can_law_read_design(BESIDE_100, law)]
SETTINGS: dict[str, Any] = {"name": "A", "question": "B?", "design": "magnitude"}


def refusal_of(design, fields, items):
    with pytest.raises(Invalid) as refused:
        design.checked_values_in_item_order_or_refuse(design.parse_answer(Form(fields, "form"), items), items)
    return refused.value


def test_a_value_is_stored_as_it_was_given():
    answer = BESIDE_100.parse_answer(Form({"score-7": " 150 ", "score-2": "0.5", "score-4": "1e3"}, "form"), [2, 7, 4])
    assert BESIDE_100.checked_values_in_item_order_or_refuse(answer, [2, 7, 4]) == [0.5, 150.0, 1000.0]


def test_the_reference_is_in_the_middle_and_as_many_times_more_as_less_is_as_far_from_it():
    assert BESIDE_100.values_to_scale_shares([100.0, 200.0, 50.0, 900.0]) == pytest.approx(
        [1 / 2, 2 / 3, 1 / 3, 9 / 10]
    )
    assert BESIDE_100.values_to_points(np.array([100.0, 200.0])) == pytest.approx([50.0, 200 / 3])
    ratio = np.array([1e-6, 0.3, 1.0, 7.0, 1e6])
    assert Magnitude(reference_value=8.0).values_to_scale_shares((8.0 * ratio).tolist()) == pytest.approx(
        expit(np.log(ratio)), rel=1e-9
    )


def test_what_is_not_above_0_or_a_million_times_away_is_refused(subtests):
    for value in (0.0, -0.0, -5.0, 1e-5, 2e8):
        with subtests.test(value=value):
            refused = refusal_of(BESIDE_100, {"score-1": "80", "score-2": repr(value)}, [1, 2])
            assert refused.code == "score_out_of_range"
            assert str(refused) == (
                "The value of item 2 must be a number above 0, from 0.0001 to 100,000,000. What you entered is kept."
            )


def test_a_value_may_have_the_signs_of_any_keyboard(subtests):
    for entered, value in (
        ("1,5", 1.5),
        ("0,125", 0.125),
        (",5", 0.5),
        ("1234,567", 1234.567),
        ("٣٫٥", 3.5),
        ("۱۲", 12.0),
        ("１５．５", 15.5),
    ):
        with subtests.test(entered=entered, value=value):
            answer = BESIDE_100.parse_answer(Form({"score-1": entered}, "form"), [1])
            assert BESIDE_100.checked_values_in_item_order_or_refuse(answer, [1]) == [value]


def test_a_comma_that_may_group_thousands_is_asked_about(subtests):
    for entered in ("1,000", "12,500", "100,000", "١,٠٠٠"):
        with subtests.test(entered=entered):
            refused = refusal_of(BESIDE_100, {"score-1": "80", "score-2": entered}, [1, 2])
            assert refused.code == "score_ambiguous"
            assert str(refused).startswith("The value of item 2 can be read as two numbers. Write it without the comma")


def test_what_is_no_number_is_refused_kindly(subtests):
    for entered in ("good", "1,5,0", "1.5,0", "1,000,000", "10²", "½", "× 2", "nan", "inf", "1_000", "0x10", "1 000"):
        with subtests.test(entered=entered):
            refused = refusal_of(BESIDE_100, {"score-1": "80", "score-2": entered}, [1, 2])
            assert refused.code == "score_not_a_number"
            assert str(refused).startswith("The value of item 2 is not a number. Write it in digits, for example 150")


@given(
    st.dictionaries(st.sampled_from(["score-1", "score-2", "score-3", "score-", "viewport", "x"]), st.text(max_size=12))
)
@example({"score-1": "1e400", "score-2": "1"})
@example({"score-1": "1e-400", "score-2": "1"})
@example({"score-1": "+.5", "score-2": "00100."})
def test_whatever_a_browser_can_send_is_read_to_be_stored_or_refused_with_a_code(fields):
    with suppress(Invalid):
        found = BESIDE_100.checked_values_in_item_order_or_refuse(
            BESIDE_100.parse_answer(Form(fields, "form"), [1, 2]), [1, 2]
        )
        assert found == [
            parse_localized_decimal_or_refuse(fields["score-1"].strip()),
            parse_localized_decimal_or_refuse(fields["score-2"].strip()),
        ]
        assert all(1e-4 <= value <= 1e8 for value in found)
        return
    refused = refusal_of(BESIDE_100, fields, [1, 2])
    typed_badly = ("score_not_a_number", "score_ambiguous")
    assert refused.code in ("scores_missing", "scores_unknown", "score_out_of_range", *typed_badly)
    assert "What you entered is kept." in str(refused) or refused.code == "scores_unknown"


def test_numbers_are_written_without_an_exponent(subtests):
    for number, digits in (
        (100.0, "100"),
        (0.0001, "0.0001"),
        (1e8, "100,000,000"),
        (2.5, "2.5"),
        (1234.5, "1,234.5"),
        (1e-8, "0.00000001"),
    ):
        with subtests.test(number=number, digits=digits):
            assert format_number_without_exponent(number) == digits


def test_a_reference_that_cannot_be_is_refused(subtests):
    for settings, told in (
        ({"reference_value": 0}, "reference_value: Input should be greater than or equal to 0.01"),
        ({"reference_value": -5}, "reference_value"),
        ({"reference_value": "nan"}, "reference_value: must be a number"),
        ({"reference": "  "}, "reference: must contain visible text"),
        ({"scale": 7}, "scale: Extra inputs are not permitted"),
    ):
        with subtests.test(settings=settings, told=told), pytest.raises(ValidationError, match=told):
            CampaignSettings(**SETTINGS, design_settings=settings)


def test_what_is_usual():
    settings = CampaignSettings(**SETTINGS)
    assert (settings.items_per_hit, settings.update_law) == (3, "log-normal")
    assert settings.design_settings == {"reference": "An item of average quality", "reference_value": 100.0}
    campaign = SimpleNamespace(items_per_hit=3)
    assert Magnitude(reference_value=10).task_message_for_first_page(campaign) == (
        "You see 3 items at a time and give each a number compared with a reference of 10."
    )


def test_laws_of_ratios_points_and_orders_can_follow_it():
    assert {"easl", "ra", "trueskill", "easl-aware", "log-normal"} <= set(LAWS)
    with pytest.raises(ValidationError, match=r"this law cannot read the answers of “Ranking with scores”"):
        CampaignSettings(name="A", question="B?", update_law="log-normal")


# One law for each kind of answers that laws read of ratios: orders, points, ratios.
@pytest.mark.parametrize("law", ["trueskill", "easl-aware", "log-normal"])
async def test_laws_of_every_kind_recover_the_truth_and_replays_to_the_bit(engine, law):
    chosen = {"design": "magnitude", "update_law": law, "items_per_hit": 4}
    campaign = await run_campaign_with_crowd(engine, design_settings={"reference_value": 10}, **chosen)
    await assert_order_recovered(engine, campaign)
    async with open_snapshot(engine) as connection:
        made = await load_campaign_answers(connection, campaign.criteria[0])
    # In units of the reference; the simulated crowd gives the odds of where it sees an item.
    means = scores.geometric_mean_scores(made)
    assert np.exp(np.log(made.value / 10)[made.item == 12].mean()) == pytest.approx(means.values[12])
    assert stats.spearmanr(means.values, np.arange(24)).statistic > 0.95
    assert means.low is not None
    assert means.high is not None
    assert (means.low < means.values).all()
    assert (means.values < means.high).all()


def test_only_ratios_have_a_geometric_mean():
    made = answers([(0, {0: 50.0, 1: 200 / 3}), (1, {0: 100 / 3, 1: 50.0})], value_kind="ratio")
    assert scores.geometric_mean_scores(made).values == pytest.approx([0.5**0.5, 2**0.5])
    with pytest.raises(Inestimable) as refusal:
        fit_scores_with_reading_notes(SCORE_METHODS["geometric_mean"], replace(made, value_kind="points"))
    assert refusal.value.code == "method_reads_other_answers"


async def test_a_form_that_was_refused_keeps_what_was_entered(app, engine):
    campaign = await create_running_campaign(
        engine, items=3, design="magnitude", design_settings={"reference": "<walk>"}
    )
    async with http_client(app) as browser:
        address = f"/prolific/{campaign.link_key}?PROLIFIC_PID=p&STUDY_ID=s&SESSION_ID=v"
        page = (await browser.get(address)).text
        assert "&lt;walk&gt;" in page
        hidden = dict(re.findall(r'name="(token|hit)" value="([^"]+)"', page))
        first, second, third = re.findall(r'name="(score-\d+)"', page)
        reply = await browser.post(address, data=hidden | {first: "150", second: "0", third: "a lot"})
        kept = dict(re.findall(r'name="(score-\d+)".*?value="([^"]*)"', reply.text, re.DOTALL))
        assert kept == {first: "150", second: "0", third: "a lot"}
        assert "The value of item 3 is not a number." in reply.text
        assert await fetch_rows(engine, "SELECT values FROM responses") == []
        again = hidden | {first: "150", second: "0.5", third: "1e3"}
        for _ in range(2):
            await browser.post(address, data=again)
    assert await fetch_rows(engine, "SELECT values FROM responses") == [([150.0, 0.5, 1000.0],)]


def test_an_answer_of_a_program_is_checked_like_a_form():
    with pytest.raises(Invalid) as refused:
        BESIDE_100.checked_values_in_item_order_or_refuse(Answer({1: float("nan"), 2: 5.0}), [1, 2])
    assert refused.value.code == "score_out_of_range"
