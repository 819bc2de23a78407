"""`easl-aware`, the law that is updated after every HIT."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.inference.ground.arrays import Array
from app.inference.ground.metrics import spearman
from app.inference.online import annotator_aware_editions as editions
from app.inference.online import annotator_aware_state as aware
from app.inference.online import beta, easl
from app.inference.online.annotator_aware_law import LAW, AwareLawBeliefs
from app.inference.online.annotator_aware_state import ItemState
from app.inference.online.law import (
    AnsweredHit,
    LawParameters,
    LawState,
)
from app.inference.online.state_queries import (
    ReadItemTails,
    run_law_steps,
)
from app.inference.ratings import annotator_aware, belief_models
from app.inference.ratings import annotator_beliefs as learning
from app.inference.ratings.annotator_evidence import EVIDENCE_SIZE, evidence_of_each_annotator
from tests.inference.beliefs import StoredCampaign, law_state_json, posteriors_after

ITEMS = 60
FLAT = [(1.0, 1.0)] * ITEMS
BEFORE_THE_FIRST_HIT = [
    editions.INITIAL_CAMPAIGN_STATE,
    editions.SECOND_EDITION_INITIAL_STATE,
    editions.FIRST_EDITION_INITIAL_STATE,
]


def campaign(seed: int, rounds: int, *, share: float = 0.0, n: int = 5) -> tuple[Array, list[AnsweredHit]]:
    """Return true scores of n items and HITs by 12 annotators; the first ones answer at random."""
    rng = np.random.default_rng(seed)
    truth, bias = rng.beta(2, 2, ITEMS), rng.normal(0, 0.15, 12)
    hits = []
    for _ in range(rounds):
        for shown in rng.permutation(ITEMS).reshape(-1, n):
            who = int(rng.integers(12))
            y = rng.random(n) if who < share * 12 else truth[shown] + bias[who] + 0.12 * rng.normal(size=n)
            hits.append(AnsweredHit(who, shown.tolist(), np.round(y.clip(0, 1), 2).tolist()))
    return truth, hits


def of_few_items(count: int) -> list[AnsweredHit]:
    """Return HITs of two of three items, so that each item has many judgments."""
    rng = np.random.default_rng(3)
    return [AnsweredHit(k % 12, rng.permutation(3)[:2].tolist(), rng.random(2).round(2).tolist()) for k in range(count)]


def beliefs_before_first_hit(priors, like=editions.INITIAL_CAMPAIGN_STATE) -> AwareLawBeliefs:
    """Return the beliefs before the first HIT, under the edition of a campaign with this state."""
    a, b = np.reshape(np.array(priors, float), (-1, 2)).T
    return LAW.initial_beliefs([a, b], LawParameters(), LawState(like))


def learned_from(hits, priors=FLAT, like=editions.INITIAL_CAMPAIGN_STATE) -> AwareLawBeliefs:
    learned = beliefs_before_first_hit(priors, like)
    learned.apply_hits(hits)
    return learned


def replay(priors, hits):
    """Return both parameters of all posteriors after all HITs."""
    return learned_from(hits, priors).state


def flat(hits):
    rows = [(item, who, score) for who, shown, scores in hits for item, score in zip(shown, scores, strict=True)]
    return [np.array(column) for column in zip(*rows, strict=True)]


def test_the_first_hit_is_that_of_easl():
    scores = [0.0, 0.3, 1.0]
    change = aware.compute_aware_hit_change(
        7,
        scores,
        priors=[(1.0, 1.0), (2.0, 1.5), (1.0, 1.0)],
        items=[ItemState()] * 3,
        annotator_states={},
        campaign_state=editions.INITIAL_CAMPAIGN_STATE,
    )
    assert (change.a, change.b) == easl.update([1, 2, 1], [1, 1.5, 1], scores, LawParameters())
    assert list(change.annotators) == [7]
    assert [state.judgment_count for state in change.items] == [1] * 3
    assert [tuple(state.since) for state in change.items] == list(zip(change.a, change.b, strict=True))
    assert len(change.annotators[7]) == aware.ANNOTATOR_SIZE
    assert len(change.campaign_state) == len(editions.INITIAL_CAMPAIGN_STATE) + editions.TOTALS_SIZE


def test_one_annotator_alone_is_scored_as_by_easl():
    _, hits = campaign(3, 2)
    alone = [hit._replace(annotator=0) for hit in hits]
    assert replay(FLAT, alone) == pytest.approx(posteriors_after(easl.LAW, ITEMS, alone), rel=1e-15)


@pytest.mark.parametrize("like", BEFORE_THE_FIRST_HIT)
@pytest.mark.parametrize("hits", [campaign(5, 4, share=0.3)[1], of_few_items(150)], ids=["many items", "few items"])
def test_a_campaign_whose_state_was_stored_after_every_hit_has_the_bits_of_its_replay(like, hits):
    stored = StoredCampaign(LAW, beliefs_before_first_hit(FLAT, like))
    for hit in hits:
        stored.apply_hit_and_return_change(hit)
    whole = learned_from(hits, like=like)
    assert stored.state == whole.state.tolist()
    assert stored.law_state() == law_state_json(whole.law_state_besides_posteriors())


@pytest.mark.parametrize("like", BEFORE_THE_FIRST_HIT)
def test_a_replay_follows_the_rule_of_what_is_stored_of_the_campaign_at_any_time(like):
    _, hits = campaign(5, 2)
    learned = learned_from(hits, like=like)
    assert beliefs_before_first_hit(FLAT, learned.campaign_state).campaign_state == like
    assert (
        learned_from(hits, like=learned.campaign_state).law_state_besides_posteriors().campaign
        == learned.campaign_state
    )


@pytest.mark.parametrize("like", BEFORE_THE_FIRST_HIT)
def test_what_is_looked_at_is_asked_for_and_nothing_else_is(like):
    stored, unread = StoredCampaign(LAW, beliefs_before_first_hit(FLAT, like)), 0
    for hit in of_few_items(150):
        change = stored.apply_hit_and_return_change(hit)
        (asked,) = [ask.items for ask in stored.queries if isinstance(ask, ReadItemTails)]
        assert list(asked) == [number for number, (_, long) in change.law_state.items.items() if long is not None]
        unread += len(change.items) - len(asked)
    assert (unread > 0) == bool(like)  # under the first edition, all that a HIT shows is looked at


def test_sums_kept_from_hit_to_hit_are_those_of_all_judgments():
    _, hits = campaign(6, 5, share=0.3)
    learned = learned_from(hits)
    rows = np.concatenate([item.judgment_rows_with_consensus() for item in learned.items])
    judged = annotator_aware.validated_scored_judgments(
        np.zeros(len(rows), int), rows[:, 0].astype(int), rows[:, 1], None, 12
    )
    evidence = evidence_of_each_annotator(judged, rows[:, 2:].T)
    kept = np.array([learned.annotators[number] for number in range(12)])
    assert kept[:, :EVIDENCE_SIZE] == pytest.approx(evidence, abs=1e-9)
    assert kept[:, -learning.TOTALS_SIZE :].sum(axis=0) == pytest.approx(
        np.array(learned.campaign_state[len(editions.INITIAL_CAMPAIGN_STATE) :]), abs=1e-9
    )


def shares_of(learned, item):
    people = {k: learned.annotators[k] for k in aware.annotator_number_of_each_judgment(learned.items[item])}
    return map(
        np.array, aware.current_weight_and_score_of_each_judgment(learned.items[item], people, learned.campaign_state)
    )


@pytest.mark.parametrize("like", BEFORE_THE_FIRST_HIT)
def test_the_mean_of_corrected_scores_by_weight_is_the_score_of_an_item_that_was_just_looked_at(like):
    _, hits = campaign(5, rounds=10, share=0.25)
    learned = beliefs_before_first_hit(FLAT, like)
    changes = list(learned.apply_hits_and_iterate_changes(hits))
    posteriors = {item: state for change in changes for item, *state in zip(change.items, *change.state, strict=True)}
    for item, (a, b) in posteriors.items():
        weight, score = shares_of(learned, item)
        just_now = item in changes[-1].items
        assert weight @ score / weight.sum() == pytest.approx((a - 1) / (a + b - 2), abs=1e-12 if just_now else 0.02)
        if just_now:
            assert weight.sum() == pytest.approx(a + b - 2)
            assert ((weight > 0) & (weight <= 1)).all()


@pytest.mark.parametrize("like", BEFORE_THE_FIRST_HIT)
def test_what_judgments_count_for_is_the_same_from_what_is_stored_and_from_memory(like):
    _, hits = campaign(5, 4, share=0.3)
    stored, learned = StoredCampaign(LAW, beliefs_before_first_hit(FLAT, like)), learned_from(hits, like=like)
    for hit in hits:
        stored.apply_hit_and_return_change(hit)
    for item in range(ITEMS):
        told = run_law_steps(LAW.judgment_weights_querying_state_or_none(item), stored.answer_state_query)
        assert list(told) == [numbers.tolist() for numbers in shares_of(learned, item)]


def test_who_answers_at_random_counts_for_less_and_who_is_strict_is_corrected():
    _, hits = campaign(5, rounds=10, share=0.25)
    learned = learned_from(hits)
    heard: list[list[float]] = [[] for _ in range(12)]
    moved = 0.0
    for item in range(ITEMS):
        weight, score = shares_of(learned, item)
        judges = aware.annotator_number_of_each_judgment(learned.items[item])
        for who, one in zip(judges, weight, strict=True):
            heard[who].append(one)
        moved = max(moved, abs(score - learned.items[item].judgment_rows_with_consensus()[:, 1]).max())
    assert max(map(max, heard[:3])) < 0.5 < min(map(min, heard[3:]))
    assert moved > 0.05


def test_an_item_that_nobody_judged_has_no_weights():
    assert aware.current_weight_and_score_of_each_judgment(ItemState(), {}, editions.INITIAL_CAMPAIGN_STATE) == ([], [])
    assert run_law_steps(
        LAW.judgment_weights_querying_state_or_none(3),
        StoredCampaign(LAW, beliefs_before_first_hit(FLAT)).answer_state_query,
    ) == (
        [],
        [],
    )


def test_only_those_concerned_change():
    learned = learned_from(campaign(8, 1)[1])
    who, shown, scores = 11, [0, 1], [0.2, 0.9]
    states = [learned.items[item] for item in [*shown, 5]]
    needed = aware.annotator_numbers_involved_in_hit(who, states, learned.campaign_state, rescan_count=1)
    assert needed == sorted({11, *(who for state in states for who in aware.annotator_number_of_each_judgment(state))})
    change = aware.compute_aware_hit_change(
        who,
        scores,
        priors=FLAT[:3],
        items=states,
        annotator_states={number: learned.annotators[number] for number in needed if number in learned.annotators},
        campaign_state=learned.campaign_state,
        rescan_count=1,
    )
    assert sorted(change.annotators) == needed
    assert change.items[2].judgment_count == states[2].judgment_count


def test_every_judged_item_has_its_turn():
    _, hits = campaign(7, 3)
    learned = beliefs_before_first_hit(FLAT)
    changed = [change.items[5:] for change in learned.apply_hits_and_iterate_changes(hits)]
    at_end = changed[-6:]  # 36 HITs of 5: 180 judgments, of which 100 are looked at again with each HIT
    assert {item for again in at_end for item in again} == set(range(ITEMS))
    assert all(
        sum(learned.items[k].judgment_count for k in again) <= 2 * editions.MAX_RESCANNED_JUDGMENTS for again in at_end
    )


def test_an_answer_to_an_item_of_many_judgments_costs_no_more_than_one_of_few():
    """Return what is read for it: judgments are scanned in turn, not with every answer to their item."""
    learned = beliefs_before_first_hit([(1.0, 1.0)] * 3)
    rng = np.random.default_rng(3)
    looked = []
    for k in range(900):
        before = [learned.items[item] for item in (0, 1)]
        looked.append(
            sum(before[j].judgment_count for j in aware.positions_of_scanned_items(before, 0, learned.campaign_state))
        )
        learned.apply_hit_and_return_change(AnsweredHit(k % 40, [0, 1], rng.random(2).round(2).tolist()))
    assert learned.items[0].judgment_count == 900
    assert looked[10] == 20  # all, while there are few
    assert np.mean(looked[-400:]) < 100  # of 1,000 to 1,800
    assert sum(learned.items[0].since[:2]) == pytest.approx(902, rel=0.05)


def test_what_is_looked_at_must_be_at_hand():
    _, hits = campaign(4, 2)
    learned = learned_from(hits)
    learned.items = [item._replace(looked=None) for item in learned.items]
    with pytest.raises(ValueError, match="needs its scanned judgments"):
        learned.apply_hit_and_return_change(hits[0])


@pytest.mark.parametrize(("rounds", "share"), [(2, 0.75), (6, 0.9)])
def test_it_comes_close_to_the_fit_to_all_judgments(rounds, share):
    """Of what the fit wins over the mean it has this share, and with 6 judgments per item it is within .01."""
    found = []
    for seed in range(4):
        truth, hits = campaign(seed, rounds, share=0.3)
        items, annotators, scores = flat(hits)
        plain = np.bincount(items, scores) / np.bincount(items)
        fitted = annotator_aware.fit(items, annotators, scores).score
        found.append([spearman(s, truth) for s in (plain, fitted, beta.score(*replay(FLAT, hits)))])
    plain, fitted, online_ = np.mean(found, axis=0)
    assert fitted > plain + 0.03
    assert online_ - plain > share * (fitted - plain)
    assert rounds < 6 or online_ > fitted - 0.01


def test_an_annotator_may_judge_an_item_again():
    _, hits = campaign(9, 2)
    again = [*hits, hits[0]._replace(values=[0.5] * 5)]
    a, b = replay(FLAT, again)
    assert (a + b)[hits[0].items].min() > 2 + 2 * 0.1
    assert np.isfinite([a, b]).all()


@given(
    st.lists(
        st.tuples(st.integers(-3, 3), st.permutations(range(4)), st.lists(st.floats(0, 1), min_size=3, max_size=3))
    )
)
@settings(max_examples=15)
def test_posteriors_grow_by_at_most_one_judgment_each(hits):
    hits = [AnsweredHit(who, shown[:3], scores) for who, shown, scores in hits]
    a, b = replay([(1.0, 1.0)] * 4, hits)
    counts = np.bincount([item for _, shown, _ in hits for item in shown], minlength=4)
    assert (a >= 1).all()
    assert (b >= 1).all()
    assert (a + b <= 2 + counts + 1e-9).all()


def test_no_hits_leave_the_priors():
    a, b = replay([(2.0, 3.0)], [])
    assert (a.tolist(), b.tolist()) == ([2.0], [3.0])


def test_what_cannot_be_a_hit_is_refused(subtests):
    for hit, message in (
        ((0, [0, 0], [0.1, 0.2]), "twice in one task"),
        ((0, [0, 60], [0.1, 0.2]), "between 0 and 59"),
        ((0, [0, -1], [0.1, 0.2]), "between 0 and 59"),
        ((0, [0, 1], [0.1]), "one score per item"),
        ((0, [0], [1.5]), "between 0 and 1"),
    ):
        with subtests.test(hit=hit, message=message), pytest.raises(ValueError, match=message):
            replay(FLAT, [AnsweredHit(*hit)])


def test_every_item_needs_its_prior():
    with pytest.raises(ValueError, match="each item has a prior"):
        aware.compute_aware_hit_change(
            0,
            [0.5],
            priors=[],
            items=[ItemState()],
            annotator_states={},
            campaign_state=editions.INITIAL_CAMPAIGN_STATE,
        )


FLAT_CROWDS = {
    "only zeros": (3, lambda _rng: np.zeros(90)),
    "few positives": (12, lambda rng: (rng.random(90) < 0.02) * 1.0),
    "nearly all at the top": (12, lambda rng: (rng.random(90) < 0.95) * 1.0),
    "all near the middle": (3, lambda _rng: np.full(90, 0.5)),
}


@pytest.mark.parametrize("kind", FLAT_CROWDS)
def test_annotators_who_agree_are_not_said_to_answer_at_random_where_answers_hardly_differ(kind):
    crowds, draw_truth = FLAT_CROWDS[kind]
    for seed in range(crowds):
        rng = np.random.default_rng(seed)
        truth = draw_truth(rng)
        hits = [
            AnsweredHit(int(rng.integers(8)), items.tolist(), truth[items].tolist())
            for _ in range(3)
            for items in rng.permutation(90).reshape(-1, 5)
        ]
        learned = learned_from(hits, [(1.0, 1.0)] * 90)
        described = LAW.annotator_description_by_number(learned.annotators, learned.campaign_state).values()
        assert max(annotator.at_random for annotator in described) < 0.5
        fitted = annotator_aware.fit(*flat(hits))
        assert np.nanmax(fitted.random) < 0.5


def campaign_about_the_best(seed: int) -> tuple[list[AnsweredHit], Array]:
    """Return HITs by 12 annotators that show the better half four times as often, and the annotators' biases."""
    rng = np.random.default_rng(seed)
    truth, bias = rng.beta(2, 2, ITEMS), rng.normal(0, 0.1, 12)
    better = np.flatnonzero(truth >= np.median(truth))
    rounds = [rng.permutation(ITEMS), *(rng.permutation(better) for _ in range(8))]
    hits = []
    for shown in (items for each in rounds for items in each.reshape(-1, 5)):
        who = int(rng.integers(12))
        y = truth[shown] + bias[who] + 0.1 * rng.normal(size=5)
        hits.append(AnsweredHit(who, shown.tolist(), np.round(y.clip(0, 1), 2).tolist()))
    return hits, bias


def test_biases_are_relative_to_the_crowd_whatever_is_asked():
    """Before the third edition every annotator seemed too strict, for the centre was that of the better items."""
    for edition, limit in ((editions.INITIAL_CAMPAIGN_STATE, 0.03), (editions.SECOND_EDITION_INITIAL_STATE, np.inf)):
        errors = []
        for seed in range(4):
            hits, bias = campaign_about_the_best(seed)
            learned = learned_from(hits, like=edition)
            described = LAW.annotator_description_by_number(learned.annotators, learned.campaign_state)
            errors.append(np.mean([described[k].bias - (bias[k] - bias.mean()) for k in described]))
        assert abs(np.mean(errors)) < limit
        assert limit < np.inf or np.mean(errors) < -0.05


def test_the_level_kept_from_hit_to_hit_is_that_of_all_judgments():
    hits, _ = campaign_about_the_best(1)
    learned = learned_from(hits)
    scores = [item.judgment_rows_with_consensus()[:, 1] for item in learned.items if item.judgment_count]
    item_means, items, biases = learned.campaign_state[3:6]
    scanned = [score[: item.floats // aware.JUDGMENT_SIZE] for score, item in zip(scores, learned.items, strict=False)]
    assert items == len(scanned)
    assert item_means == pytest.approx(sum(score.mean() for score in scanned))
    states = np.array([*learned.annotators.values()])
    beliefs = learning.AnnotatorBeliefs.from_matrix(
        states[:, EVIDENCE_SIZE : EVIDENCE_SIZE + belief_models.RELIABILITY_COUNT + 7]
    )
    assert biases == pytest.approx(states[:, 0] @ beliefs.bias)
