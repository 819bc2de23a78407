"""A campaign in memory asks and learns as one in the database does."""

from itertools import islice

import numpy as np

from app.inference.online.law import AnsweredHit, LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.selection.registry import SELECTION_RULES
from app.selection.rule import SelectionSettings
from app.simulation.annotators import HabitAnnotators, Population
from app.simulation.campaign import SimulatedCampaign

ASKING = SelectionSettings(judgments_per_item=4, items_per_hit=3, gamma=0.1, best_count=5)
ITEMS = 20
OF_SCALES = [name for name, rule in SELECTION_RULES.items() if not rule.reads_labels]


def campaign_and_people(rule="easl", law="easl", seed=1, wanted=4):
    rng = np.random.default_rng(seed)
    people = HabitAnnotators(Population(bias_sd=0.1).draw_habits(6, rng), rng.random(ITEMS))
    asking = SelectionSettings(judgments_per_item=wanted, items_per_hit=3, gamma=0.1, best_count=5)
    return SimulatedCampaign(SELECTION_RULES[rule], ONLINE_LAWS[law], asking, LawParameters(), ITEMS, rng), people


def test_what_it_knows_is_what_its_law_makes_of_all_answers(subtests):
    for rule in OF_SCALES:
        for law in ("easl", "ra", "trueskill", "easl-aware"):
            with subtests.test(rule=rule, law=law):
                campaign, people = campaign_and_people(rule, law)
                hits = list(campaign.iterate_hits_while_answering_them(people))
                replayed = campaign.law.initial_beliefs(
                    [np.full(ITEMS, number) for number in campaign.law.family.default_prior], LawParameters()
                )
                replayed.apply_hits(hits)
                assert campaign.beliefs.state.tolist() == replayed.state.tolist()
                assert campaign.index.score.tolist() == campaign.score.tolist()
                assert campaign.index.variance.tolist() == campaign.variance.tolist()


def test_it_asks_until_every_item_has_the_judgments_it_wants():
    campaign, people = campaign_and_people()
    hits = list(campaign.iterate_hits_while_answering_them(people))
    assert campaign.judgments.tolist() == [4] * ITEMS
    assert np.bincount([item for hit in hits for item in hit.items]).tolist() == [4] * ITEMS


def test_released_items_are_asked_about_no_more_until_they_are_taken_back():
    campaign, people = campaign_and_people(rule="scores", wanted=30)
    some = np.arange(ITEMS) < 15
    campaign.release_settled_items(some)
    hits = list(islice(campaign.iterate_hits_while_answering_them(people), 20))
    assert {item for hit in hits for item in hit.items} == {*range(15, ITEMS)}
    before = campaign.judgments[15:].tolist()
    campaign.release_settled_items(~some)
    campaign.release_settled_items(~some)
    assert {item for hit in islice(campaign.iterate_hits_while_answering_them(people), 20) for item in hit.items} == {
        *range(15)
    }
    campaign.release_settled_items(some & ~some)
    assert campaign.judgments[15:].tolist() == before


def test_who_has_seen_all_that_is_asked_comes_again_when_more_is():
    campaign, people = campaign_and_people(rule="scores", wanted=30)
    campaign.repeats_items = False
    few = np.arange(ITEMS) >= 3
    campaign.release_settled_items(few)
    hits = campaign.iterate_hits_while_answering_them(people)
    # All six see the three items; before the last of them is done, the others are asked about once more.
    assert {item for hit in islice(hits, 5) for item in hit.items} == {0, 1, 2}
    campaign.release_settled_items(~few)
    later = list(hits)
    assert {hit.annotator for hit in later} == {*range(6)}
    assert {item for hit in later for item in hit.items} == {*range(3, ITEMS)}


def test_nobody_sees_an_item_twice_while_there_are_others():
    campaign, people = campaign_and_people(wanted=30)
    seen: dict[int, set[int]] = {}
    for hit in islice(campaign.iterate_hits_while_answering_them(people), 30):
        before = seen.setdefault(hit.annotator, set())
        assert len(before) > ITEMS - 3 or not before & {*hit.items}
        before.update(hit.items)


def test_the_same_seed_asks_the_same():
    assert list(campaign_and_people()[0].iterate_hits_while_answering_them(campaign_and_people()[1])) == list(
        campaign_and_people()[0].iterate_hits_while_answering_them(campaign_and_people()[1])
    )


def test_the_rule_for_comparisons_learns_from_every_two_items_of_a_hit():
    asking = SelectionSettings(judgments_per_item=20, items_per_hit=3, gamma=0.1)
    rng = np.random.default_rng(3)
    mine = SimulatedCampaign(SELECTION_RULES["pairs"], ONLINE_LAWS["trueskill"], asking, LawParameters(), 10, rng)
    reasons = []
    for annotator in range(16):
        draw = mine.draw_next_hit_or_none(annotator)
        assert draw is not None
        reasons.append(draw.reason)
        mine.update_campaign_by_answer(AnsweredHit(annotator, draw.items, [item / 10 for item in draw.items]))
    # Three comparisons a HIT: 25 of them, which are 5 an item, after nine HITs.
    assert reasons == ["fewest_judgments"] * 9 + ["most_informative"] * 7
    assert mine.score[7:].min() > mine.score[:3].max()
