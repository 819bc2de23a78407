"""Promises of every design, those of the tests included: a new one is checked by being registered."""

import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from jinja2 import FileSystemLoader
from pydantic import ValidationError

from app.campaigns.settings import CampaignSettings
from app.designs.answer import Answer, Form
from app.designs.content import Content, ItemTexts, rendered_plain_items
from app.designs.ordinal import Ordinal
from app.designs.registry import DESIGNS
from app.designs.scale import MAX_POINTS
from app.errors import Invalid
from app.http.templating import english_environment
from tests.toys import TEMPLATES
from tests.toys.smiley import Smiley

CAMPAIGN = {
    "question": "How?", "low_label": "low", "middle_label": None, "high_label": "high", "show_numbers": True,
    "hits_answered": 0,
}  # fmt: skip
PLACES = [Path(__file__).parents[2] / "templates", Path(TEMPLATES)]
PAGES = english_environment.overlay(loader=FileSystemLoader([str(place) for place in PLACES]))


@pytest.fixture(params=[*DESIGNS.values(), Smiley], ids=lambda design: design.name)
def design(request):
    """Each with the settings that it has where nobody chooses."""
    return request.param()


@pytest.fixture
def items(design):
    return [7, 3, 5, 12, 4, 9, 1, 8, 6, 2][: design.default_items]


def spread(items):
    """Where items may seem to stand: the last the highest."""
    return np.linspace(0.0, 1.0, len(items)).tolist() if len(items) > 1 else [1.0]


def test_it_is_registered_by_its_name():
    assert {name: design.name for name, design in DESIGNS.items()} == {name: name for name in DESIGNS}


def test_it_has_a_page_of_its_own(design):
    assert any((place / "designs" / f"{design.name}.html").exists() for place in PLACES)


def test_it_has_a_picture_and_a_line_where_it_is_chosen(subtests):
    for name in DESIGNS:
        with subtests.test(name=name):
            assert DESIGNS[name].summary.endswith(".")
            assert DESIGNS[name].summary not in {DESIGNS[other].summary for other in DESIGNS if other != name}
            assert (PLACES[0] / "designs" / f"{name}_picture.svg").exists()


def test_what_was_given_fills_the_form_that_it_was_given_in(design, items):
    for shares in np.random.default_rng(5).uniform(-0.5, 1.5, (50, len(items))).tolist():
        given = dict(zip(items, design.simulate_answer_values(shares), strict=True))
        assert design.parse_answer(Form(design.form_fields(given), source="form"), items).values == given
    assert design.form_fields({}) == {}


def test_it_says_what_annotators_do(design):
    campaign = SimpleNamespace(items_per_hit=design.default_items, **CAMPAIGN)
    assert design.task_message_for_first_page(campaign).startswith("You ")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("text", "You see [0-9a-z]+ items?"),
        ("html", "You see [0-9a-z]+ items?"),
        ("audio", "You hear [0-9a-z]+ recordings?"),
        ("image", "You see [0-9a-z]+ pictures?"),
        ("video", "You watch [0-9a-z]+ videos?"),
    ],
)
def test_it_names_recordings_pictures_and_videos_as_what_they_are(content, words, subtests):
    for design in (design_type() for design_type in DESIGNS.values()):
        for count in {1, design.default_items}:
            with subtests.test(name=design.name, count=count):
                task = SimpleNamespace(items_per_hit=count, **CAMPAIGN)
                assert re.match(f"{words} at a time ", design.first_page_message(task, content))


def test_what_is_usual_for_it_is_possible(design):
    settings = CampaignSettings(name="A", question="B?", design=design.name) if design.name in DESIGNS else None
    if settings is not None:
        assert (settings.items_per_hit, settings.update_law) == (design.default_items, design.default_law)
    assert design.default_items in design.items_per_hit
    assert 1 <= design.fewest_items <= design.items_per_hit[0]


def test_whoever_sees_items_anywhere_on_the_scale_or_beyond_has_values_to_give(design, items):
    for shares in np.random.default_rng(4).uniform(-0.5, 1.5, (200, len(items))).tolist():
        given = design.simulate_answer_values(shares)
        assert [design.stored_value_or_none(value) for value in given] == given
        assert (
            design.checked_values_in_item_order_or_refuse(Answer(dict(zip(items, given, strict=True))), items) == given
        )


def test_who_is_seen_higher_gets_no_smaller_share(design, items):
    if design.value_kind == "classes":
        return  # they have no order
    shares = design.values_to_scale_shares(design.simulate_answer_values(spread(items)))
    assert shares == sorted(shares)
    assert all(0.0 <= share <= 1.0 for share in shares)


def test_values_are_stored_in_the_order_in_which_items_were_shown(design, items):
    given = dict(zip(sorted(items), design.simulate_answer_values(spread(items)), strict=True))
    assert design.checked_values_in_item_order_or_refuse(Answer(given), items) == [given[item] for item in items]


def test_a_missing_item_or_one_too_many_is_refused_and_named_by_a_code(design, items):
    given = dict(zip(items, design.simulate_answer_values(spread(items)), strict=True))
    less = {item: value for item, value in given.items() if item != items[0]}
    for sent in (less, given | {99: given[items[0]]}):
        with pytest.raises(Invalid) as refused:
            design.checked_values_in_item_order_or_refuse(Answer(sent), items)
        assert refused.value.code in ("scores_missing", "scores_unknown")


@pytest.mark.parametrize("beyond", [-1.0, 1e12, float("nan"), float("inf"), -float("inf")])
def test_a_value_that_cannot_be_is_refused(design, items, beyond):
    assert design.stored_value_or_none(beyond) is None
    given = dict(zip(items, design.simulate_answer_values(spread(items)), strict=True))
    with pytest.raises(Invalid):
        design.checked_values_in_item_order_or_refuse(Answer(given | {items[0]: beyond}), items)


def test_an_empty_form_is_an_answer_that_will_not_do(design, items):
    with pytest.raises(Invalid) as refused:
        design.checked_values_in_item_order_or_refuse(
            design.parse_answer(Form({"hit": "1", "token": "t"}, "form"), items), items
        )
    assert refused.value.code == "scores_missing"


def test_shares_and_points_of_the_ends_are_those_of_their_scales(design):
    if design.value_kind == "ratio":
        # The ends of this scale are 0 and infinity, which are no values: those that are taken come as near as they may.
        low, high = design.values_to_points(np.array(design.value_range))
        assert 0.0 < low < 0.01
        assert 99.99 < high < 100.0
        return
    low, high = (0.0, 100.0) if design.value_kind != "order" else (100.0, 0.0)
    assert [MAX_POINTS * share for share in design.values_to_scale_shares(design.value_range)] == [low, high]
    assert design.values_to_points(np.array(design.value_range)).tolist() == [low, high]


def test_points_are_a_hundred_times_the_share(design, items):
    given = design.simulate_answer_values(spread(items))
    assert design.values_to_points(np.array(given)) == pytest.approx(
        100 * np.array(design.values_to_scale_shares(given))
    )


def test_minus_0_is_stored_as_0_or_not_at_all(design):
    assert str(design.stored_value_or_none(-0.0)) in ("0.0", "None")


class Controls(HTMLParser):
    """Return what a page's form asks: of each name the values that can be chosen, and whether it is required."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: dict[str, list[dict[str, str | None]]] = {}
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        control = dict(attrs)
        if tag == "input" and (name := control.get("name")):
            self.found.setdefault(name, []).append(control)


def shown(design, items, **context):
    texts = [f"item {item}" for item in items]
    fields = {
        "rendered": rendered_plain_items(texts),
        "draft": {},
        "entered_fields": {},
        "send": "Submit",
        "preview": False,
    }
    campaign = SimpleNamespace(design=design, items_per_hit=len(items), **CAMPAIGN)
    asked = [SimpleNamespace(name="", field_prefix="", **CAMPAIGN)]
    fields |= {"campaign": campaign, "design": design, "criterion_forms": asked}
    return PAGES.get_template("_hit.html").render(fields | context)


def test_its_page_draws_what_items_are_and_what_stands_beside_them(design, items):
    rows = [ItemTexts("**Bold** ![](a.png)", f"from {item}.", "for all") for item in items]
    drawn = Content("markdown", source="s", reference="r").render_items(rows, {"a.png": "/media/1"})
    page = shown(design, items, rendered=drawn)
    for part in ("<strong>Bold</strong>", 'src="/media/1"', 'name="broken"'):
        assert page.count(part) == len(items)
    assert [page.count(f"from {item}.") for item in items] == [1] * len(items)
    assert page.count("for all") == 1


def test_its_page_lets_annotators_say_of_each_item_that_it_cannot_be_judged(design, items):
    offers = CAMPAIGN | {"cannot_be_judged": True, "unjudged_reasons": ["It is broken"]}
    page = shown(design, items, campaign=SimpleNamespace(design=design, items_per_hit=len(items), **offers))
    assert re.findall(r'name="unjudged-(\w+)"', page) == [f"0{position}" for position in range(len(items))]
    assert "unjudged-" not in shown(design, items)


def filled(html, end):
    """Return the fields that a browser sends with the first or the last choice of each."""
    chosen = {}
    for name, inputs in Controls(html).found.items():
        assert any("required" in control for control in inputs), name
        one = inputs[end]
        least, most = ("min", "max") if one["type"] == "number" else ("data-least", "data-most")
        chosen[name] = one["value"] if one["type"] == "radio" else one[least if end == 0 else most]
    return chosen


# Designs in which no two fields may have the same value.
EACH_TO_ANOTHER: tuple[str, ...] = ("best_worst",)


@pytest.mark.parametrize("end", [0, -1])
def test_what_its_page_asks_is_what_it_reads(design, items, end):
    answer = design.parse_answer(Form(filled(shown(design, items), end), "form"), items)
    if design.name in EACH_TO_ANOTHER:
        with pytest.raises(Invalid) as refused:
            design.checked_values_in_item_order_or_refuse(answer, items)
        assert refused.value.code == "answer_impossible"
    else:
        values = design.checked_values_in_item_order_or_refuse(answer, items)
        assert [design.stored_value_or_none(value) for value in values] == values


def test_what_was_entered_before_a_refusal_is_shown_again(design, items):
    typed = filled(shown(design, items), -1)
    again = Controls(shown(design, items, entered_fields=typed)).found
    for name, inputs in again.items():
        kept = [one["value"] for one in inputs if one["type"] != "radio" or "checked" in one]
        assert kept == [typed[name]]


def test_a_page_that_is_only_looked_at_has_nothing_to_send(design, items):
    assert 'type="submit"' in shown(design, items)
    assert 'type="submit"' not in shown(design, items, preview=True)


def test_a_text_that_no_form_could_send_back_is_refused(subtests):
    for text in ("a\nb", "a\u2028b", "\ud800"):
        for name, setting in (("ordinal", "labels"), ("categories", "labels"), ("baseline", "baseline")):
            with subtests.test(text=text, name=name, setting=setting):
                wrong = text if setting == "baseline" else [text, "c"]
                with pytest.raises(ValidationError):
                    DESIGNS[name].model_validate({setting: wrong})


def test_a_setting_that_only_looks_like_a_number_or_a_text_is_refused(subtests):
    for name, settings in (
        ("magnitude", {"reference_value": True}),
        ("magnitude", {"reference_value": "1_0"}),
        ("magnitude", {"reference": "a\x07b"}),
        ("categories", {"labels": ["yes", "n\x1bo"]}),
        ("ranking", {"best_label": "mo\x00st"}),
    ):
        with (
            subtests.test(name=name, settings=settings),
            pytest.raises(ValidationError, match=r"must be a number|must not contain control characters"),
        ):
            DESIGNS[name].model_validate(settings)


def test_a_label_names_its_class_also_if_it_is_a_number():
    design = Ordinal(labels=("1", "2", "3"))
    assert design.checked_values_in_item_order_or_refuse(Answer({4: "1", 9: 1.0}), [4, 9]) == [0.0, 1.0]
    with pytest.raises(Invalid) as refused:
        design.checked_values_in_item_order_or_refuse(Answer({4: "4", 9: 1.0}), [4, 9])
    assert refused.value.code == "class_unknown"


def test_values_of_a_whole_hit_are_stored_as_those_of_an_answer_and_what_is_refused_there_is_none_here(design, items):
    simulated = design.simulate_answer_values(spread(items))
    low, high = design.value_range
    for values in (
        simulated,
        simulated[::-1],
        [low] * len(items),
        [high + 1.0, *simulated[1:]],
        [-0.0, *simulated[1:]],
    ):
        try:
            expected = design.checked_values_in_item_order_or_refuse(
                Answer(dict(zip(items, values, strict=True))), items
            )
        except Invalid:
            expected = None
        assert repr(design.stored_values_of_whole_hit_or_none(values)) == repr(expected)
    for missing in (None, float("nan")):
        assert design.stored_values_of_whole_hit_or_none([missing, *simulated[1:]]) is None
