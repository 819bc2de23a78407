"""`easl-aware`, the law that is updated after every HIT."""

import json

import numpy as np
import pytest
from app.inference.online.annotator_aware_learned import Learned
from hypothesis import given, settings
from hypothesis import strategies as st

from app.inference.ground.metrics import spearman
from app.inference.online import annotator_aware_online as aware
from app.inference.online import beta, easl
from app.inference.online import laws as online
from app.inference.online.annotator_aware_online import ItemState
from app.inference.online.law import Parameters
from app.inference.ratings import annotator_aware
from app.inference.ratings import annotator_beliefs as learning
from app.inference.ratings.annotator_evidence import EVIDENCE, evidence_of

ITEMS = 60
FLAT = [(1.0, 1.0)] * ITEMS


def campaign(seed: int, rounds: int, *, share: float = 0.0, n: int = 5):
    """True scores and HITs of n items by 12 annotators, the first of whom answer at random."""
    rng = np.random.default_rng(seed)
    truth, bias = rng.beta(2, 2, ITEMS), rng.normal(0, 0.15, 12)
    hits = []
    for _ in range(rounds):
        for shown in rng.permutation(ITEMS).reshape(-1, n):
            who = int(rng.integers(12))
            y = rng.random(n) if who < share * 12 else truth[shown] + bias[who] + 0.12 * rng.normal(size=n)
            hits.append((who, shown.tolist(), np.round(y.clip(0, 1), 2).tolist()))
    return truth, hits


def steps(priors, hits):
    """The items that changed and the change of each HIT in turn."""
    learned = Learned.nothing(priors)
    for who, shown, scores in hits:
        yield learned.apply(who, shown, scores)


def replay(priors, hits):
    """Both parameters of all posteriors after all HITs."""
    a, b = np.reshape(np.array(priors, float), (-1, 2)).T
    after = online.Replay(aware.LAW, a, b, Parameters())
    after.take([hit[1:] for hit in hits], [hit[0] for hit in hits])
    return after.a, after.b


def flat(hits):
    rows = [(item, who, score) for who, shown, scores in hits for item, score in zip(shown, scores, strict=True)]
    return [np.array(column) for column in zip(*rows, strict=True)]


def state_after(hits):
    """The items' and annotators' states and the totals, as a database would hold them."""
    items: dict[int, ItemState] = {}
    annotators: dict[int, aware.State] = {}
    totals = aware.BEGUN
    for shown, change in steps(FLAT, hits):
        items.update(zip(shown, change.items, strict=True))
        annotators.update(change.annotators)
        totals = change.totals
    return items, annotators, totals


def test_the_first_hit_is_that_of_easl():
    scores = [0.0, 0.3, 1.0]
    change = aware.apply(
        7,
        scores,
        priors=[(1.0, 1.0), (2.0, 1.5), (1.0, 1.0)],
        items=[ItemState()] * 3,
        annotators={},
        totals=aware.BEGUN,
    )
    assert (change.a, change.b) == easl.update([1, 2, 1], [1, 1.5, 1], scores, Parameters())
    assert list(change.annotators) == [7]
    assert [state.judgments for state in change.items] == [1] * 3
    assert [tuple(state.since) for state in change.items] == list(zip(change.a, change.b, strict=True))
    assert len(change.annotators[7]) == aware.ANNOTATOR
    assert len(change.totals) == len(aware.BEGUN) + aware.TOTALS


def test_one_annotator_alone_is_scored_as_by_easl():
    _, hits = campaign(3, 2)
    alone = [(0, shown, scores) for _, shown, scores in hits]
    a, b = replay(FLAT, alone)
    plain = online.replay(online.ONLINE["easl"], np.ones(ITEMS), np.ones(ITEMS), [h[1:] for h in alone], Parameters())
    assert a == pytest.approx(plain[0], rel=1e-15)
    assert b == pytest.approx(plain[1], rel=1e-15)


def in_memory(since, looked):
    return ItemState(since, len(looked), np.array(looked))


@pytest.mark.parametrize("begun", [aware.BEGUN, []])
def test_a_campaign_whose_state_was_stored_after_every_hit_has_the_bits_of_its_replay(begun):
    """As a server does it, under this rule and the first one: stored as JSON, what is needed looked up by number."""
    _, hits = campaign(5, 4, share=0.3)
    stored = json.dumps({"items": {}, "annotators": {}, "totals": begun})
    posteriors = np.ones((ITEMS, 2))
    for who, shown, scores in hits:
        state = json.loads(stored)
        totals, items = state["totals"], {int(number): in_memory(*kept) for number, kept in state["items"].items()}
        last, may = aware.turn(totals)
        following = sorted(items.keys() - set(shown), key=lambda number: (number <= last, number))
        again, then = aware.chosen([(k, items[k].judgments) for k in following], last, may)
        totals, numbers = aware.turned(totals, *then), [*shown, *again]
        before = [items.get(item, ItemState()) for item in numbers]
        people = aware.concerned(who, before, totals, again=len(again))
        change = aware.apply(
            who,
            scores,
            priors=[FLAT[item] for item in numbers],
            items=before,
            annotators={k: state["annotators"][str(k)] for k in people if str(k) in state["annotators"]},
            totals=totals,
            again=len(again),
        )
        items |= dict(zip(numbers, change.items, strict=True))
        posteriors[numbers] = np.column_stack([change.a, change.b])
        kept = {k: (list(item.since), [] if item.looked is None else item.looked.tolist()) for k, item in items.items()}
        stored = json.dumps(
            {"items": kept, "annotators": state["annotators"] | change.annotators, "totals": change.totals}
        )
    whole = online.Replay(aware.LAW, np.ones(ITEMS), np.ones(ITEMS), Parameters())
    assert whole.learned is not None
    whole.learned = whole.learned.begun_like(begun)
    whole.take([hit[1:] for hit in hits], [hit[0] for hit in hits])
    assert posteriors.tolist() == np.column_stack([whole.a, whole.b]).tolist()


def test_sums_kept_from_hit_to_hit_are_those_of_all_judgments():
    _, hits = campaign(6, 5, share=0.3)
    items, annotators, totals = state_after(hits)
    rows = np.concatenate([items[k].rows() for k in sorted(items)])
    judged = annotator_aware.checked(np.zeros(len(rows), int), rows[:, 0].astype(int), rows[:, 1], None, 12)
    evidence = evidence_of(judged, rows[:, 2:].T)
    kept = np.array([annotators[number] for number in range(12)])
    assert kept[:, :EVIDENCE] == pytest.approx(evidence, abs=1e-9)
    assert kept[:, -learning.TOTALS :].sum(axis=0) == pytest.approx(np.array(totals[3:]), abs=1e-9)


def shares_of(learned, item):
    people = {k: learned.annotators[k] for k in aware.judges(learned.items[item])}
    return map(np.array, aware.counted(learned.items[item], people, learned.totals))


@pytest.mark.parametrize("begun", [aware.BEGUN, []])
def test_the_mean_of_corrected_scores_by_weight_is_the_score_of_an_item_that_was_just_looked_at(begun):
    _, hits = campaign(5, rounds=10, share=0.25)
    learned = Learned.nothing(FLAT).begun_like(begun)
    posteriors: dict[int, tuple[float, float]] = {}
    numbers: list[int] = []
    for who, shown, scores in hits:
        numbers, change = learned.apply(who, shown, scores)
        posteriors |= zip(numbers, zip(change.a, change.b, strict=True), strict=True)
    for item, (a, b) in posteriors.items():
        weight, score = shares_of(learned, item)
        just_now = item in numbers
        assert weight @ score / weight.sum() == pytest.approx((a - 1) / (a + b - 2), abs=1e-12 if just_now else 0.02)
        if just_now:
            assert weight.sum() == pytest.approx(a + b - 2)
            assert ((weight > 0) & (weight <= 1)).all()


def test_who_answers_at_random_counts_for_less_and_who_is_strict_is_corrected():
    _, hits = campaign(5, rounds=10, share=0.25)
    learned = Learned.nothing(FLAT)
    for hit in hits:
        learned.apply(*hit)
    heard: list[list[float]] = [[] for _ in range(12)]
    moved = 0.0
    for item in range(ITEMS):
        weight, score = shares_of(learned, item)
        judges = aware.judges(learned.items[item])
        for who, one in zip(judges, weight, strict=True):
            heard[who].append(one)
        moved = max(moved, abs(score - learned.items[item].rows()[:, 1]).max())
    assert max(map(max, heard[:3])) < 0.5 < min(map(min, heard[3:]))
    assert moved > 0.05


def test_an_item_that_nobody_judged_has_no_weights():
    assert aware.counted(ItemState(), {}, aware.BEGUN) == ([], [])


def test_only_those_concerned_change():
    _, hits = campaign(8, 1)
    items, annotators, totals = state_after(hits)
    who, shown, scores = 11, [0, 1], [0.2, 0.9]
    states = [items[item] for item in [*shown, 5]]
    needed = aware.concerned(who, states, totals, again=1)
    assert needed == sorted({11, *(who for state in states for who in aware.judges(state))})
    change = aware.apply(
        who,
        scores,
        priors=FLAT[:3],
        items=states,
        annotators={number: annotators[number] for number in needed if number in annotators},
        totals=totals,
        again=1,
    )
    assert sorted(change.annotators) == needed
    assert change.items[2].judgments == states[2].judgments


def test_every_judged_item_has_its_turn():
    _, hits = campaign(7, 3)
    learned = Learned.nothing(FLAT)
    changed = [learned.apply(who, shown, scores)[0][5:] for who, shown, scores in hits]
    at_end = changed[-6:]  # 36 HITs of 5: 180 judgments, of which 100 are looked at again with each HIT
    assert {item for again in at_end for item in again} == set(range(ITEMS))
    assert all(sum(learned.items[k].judgments for k in again) <= 2 * aware.AGAIN for again in at_end)


def test_an_answer_to_an_item_of_many_judgments_costs_no_more_than_one_of_few():
    """What is read for it: judgments are looked at in turn, not with every answer to their item."""
    learned = Learned.nothing([(1.0, 1.0)] * 3)
    rng = np.random.default_rng(3)
    looked = []
    for k in range(900):
        before = [learned.items[item] for item in (0, 1)]
        looked.append(sum(before[j].judgments for j in aware.looked_at(before, 0, learned.totals)))
        learned.apply(k % 40, [0, 1], rng.random(2).round(2).tolist())
    assert learned.items[0].judgments == 900
    assert looked[10] == 20  # all, while there are few
    assert np.mean(looked[-400:]) < 100  # of 1,000 to 1,800
    assert sum(learned.items[0].since[:2]) == pytest.approx(902, rel=0.05)


def without_what_is_not_looked_at(learned, hits):
    """The same, as if only that had been read from a database."""
    needed = learned.will_look_at(hits)
    items = [item if k in needed else item._replace(looked=None) for k, item in enumerate(learned.items)]
    return Learned(learned.priors, items, dict(learned.annotators), learned.totals)


@pytest.mark.parametrize("begun", [aware.BEGUN, []])
def test_what_some_hits_will_look_at_is_known_before_them_and_is_all_they_need(begun):
    _, hits = campaign(4, 20, share=0.3)
    learned = Learned.nothing(FLAT).begun_like(begun)
    for k in range(0, len(hits), 8):
        some = without_what_is_not_looked_at(learned, [shown for _, shown, _ in hits[k : k + 8]])
        for hit in hits[k : k + 8]:
            numbers, change = some.apply(*hit)
            expected_numbers, expected = learned.apply(*hit)
            assert numbers == expected_numbers
            assert (change.a, change.b, change.totals) == (expected.a, expected.b, expected.totals)


def test_what_is_looked_at_must_be_at_hand():
    _, hits = campaign(4, 2)
    learned = Learned.nothing(FLAT)
    for hit in hits:
        learned.apply(*hit)
    learned.items = [item._replace(looked=None) for item in learned.items]
    with pytest.raises(ValueError, match="must be given"):
        learned.apply(*hits[0])


@pytest.mark.parametrize(("rounds", "share"), [(2, 0.75), (6, 0.9)])
def test_it_comes_close_to_the_fit_to_all_judgments(rounds, share):
    """Of what the fit wins over the mean it has this share, and with 6 judgments an item it is within .01."""
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
    again = [*hits, (hits[0][0], hits[0][1], [0.5] * 5)]
    a, b = replay(FLAT, again)
    assert (a + b)[hits[0][1]].min() > 2 + 2 * 0.1
    assert np.isfinite([a, b]).all()


@given(
    st.lists(
        st.tuples(st.integers(-3, 3), st.permutations(range(4)), st.lists(st.floats(0, 1), min_size=3, max_size=3))
    )
)
@settings(max_examples=15)
def test_posteriors_grow_by_at_most_one_judgment_each(hits):
    hits = [(who, shown[:3], scores) for who, shown, scores in hits]
    a, b = replay([(1.0, 1.0)] * 4, hits)
    counts = np.bincount([item for _, shown, _ in hits for item in shown], minlength=4)
    assert (a >= 1).all()
    assert (b >= 1).all()
    assert (a + b <= 2 + counts + 1e-9).all()


def test_no_hits_leave_the_priors():
    a, b = replay([(2.0, 3.0)], [])
    assert (a.tolist(), b.tolist()) == ([2.0], [3.0])


@pytest.mark.parametrize(
    ("hit", "message"),
    [
        ((0, [0, 0], [0.1, 0.2]), "twice in one HIT"),
        ((0, [0, 60], [0.1, 0.2]), "between 0 and 59"),
        ((0, [0, -1], [0.1, 0.2]), "between 0 and 59"),
        ((0, [0, 1], [0.1]), "one score per item"),
        ((0, [0], [1.5]), "between 0 and 1"),
    ],
)
def test_what_cannot_be_a_hit_is_refused(hit, message):
    with pytest.raises(ValueError, match=message):
        replay(FLAT, [hit])


def test_every_item_needs_its_prior():
    with pytest.raises(ValueError, match="each item has a prior"):
        aware.apply(0, [0.5], priors=[], items=[ItemState()], annotators={}, totals=aware.BEGUN)
