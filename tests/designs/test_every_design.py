"""What every design promises, those of the tests too: a new one is checked by being registered."""

from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from jinja2 import FileSystemLoader

from app.designs.answer import Answer, Form
from app.designs.registry import DESIGNS
from app.errors import Invalid
from app.web import templates
from tests.toys import TEMPLATES
from tests.toys.smiley import SMILEY

ITEMS = [7, 3, 5]
CAMPAIGN = {
    "question": "How?", "low_label": "low", "middle_label": None, "high_label": "high", "show_numbers": True,
    "hits_answered": 0,
}  # fmt: skip
PLACES = [Path(__file__).parents[2] / "templates", Path(TEMPLATES)]


@pytest.fixture(params=[*DESIGNS.values(), SMILEY], ids=lambda design: design.name)
def design(request):
    return request.param


def test_it_is_registered_by_its_name():
    assert {name: design.name for name, design in DESIGNS.items()} == {name: name for name in DESIGNS}


def test_it_has_a_page_of_its_own(design):
    assert any((place / "designs" / f"{design.name}.html").exists() for place in PLACES)


def test_whoever_sees_an_item_anywhere_on_the_scale_or_beyond_has_a_value_to_give(design):
    given = [design.given(share) for share in np.linspace(-0.5, 1.5, 201)]
    assert [design.stored(value) for value in given] == given
    assert given == sorted(given)
    assert (given[0], given[-1]) == (design.lowest, design.highest)


def test_values_are_stored_in_the_order_in_which_items_were_shown(design):
    values = {item: design.given(share) for item, share in zip(sorted(ITEMS), (0.0, 0.5, 1.0), strict=True)}
    assert design.values(Answer(values), ITEMS) == [values[item] for item in ITEMS]


def test_a_missing_item_or_one_too_many_is_refused_and_named_by_a_code(design):
    for items in (ITEMS[1:], [*ITEMS, 9]):
        with pytest.raises(Invalid) as refused:
            design.values(Answer(dict.fromkeys(items, design.lowest)), ITEMS)
        assert refused.value.code


@pytest.mark.parametrize("beyond", [-1.0, 1e9, float("nan"), float("inf")])
def test_a_value_that_cannot_be_is_refused(design, beyond):
    assert design.stored(beyond) is None
    with pytest.raises(Invalid):
        design.values(Answer(dict.fromkeys(ITEMS, beyond)), ITEMS)


def test_an_empty_form_is_an_answer_that_will_not_do(design):
    with pytest.raises(Invalid):
        design.values(design.read_form({"hit": "1", "token": "t"}, source="form"), ITEMS)


def test_shares_run_from_0_to_1_and_points_from_0_to_100(design):
    ends = [design.lowest, design.highest]
    assert design.shares(ends) == [0.0, 1.0]
    assert design.points(np.array(ends)).tolist() == [0.0, 100.0]


def test_minus_0_is_stored_as_0(design):
    assert str(design.stored(-0.0)) == "0.0"


class Controls(HTMLParser):
    """What a page's form asks: of each name the values that can be chosen, and whether it is required."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: dict[str, list[dict[str, str | None]]] = {}
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        control = dict(attrs)
        if tag == "input" and (name := control.get("name")):
            self.found.setdefault(name, []).append(control)


def shown(design, **context):
    fields = {"numbers": ITEMS, "texts": ["a", "b", "c"], "draft": {}, "typed": {}, "send": "Submit", "preview": False}
    environment = templates.env.overlay(loader=FileSystemLoader([str(place) for place in PLACES]))
    return environment.get_template("_hit.html").render(
        fields | {"campaign": SimpleNamespace(design=design.name, **CAMPAIGN)} | context
    )


@pytest.mark.parametrize("end", [0, -1])
def test_what_its_page_asks_is_what_it_reads_and_the_ends_of_its_controls_are_those_of_its_scale(design, end):
    controls = Controls(shown(design)).found
    chosen = {}
    for name, inputs in controls.items():
        assert all("required" in control for control in inputs), name
        one = inputs[end]
        chosen[name] = one["value"] if one["type"] == "radio" else one["min" if end == 0 else "max"]
    values = design.values(design.read(Form(chosen, "form")), ITEMS)
    assert values == [design.lowest if end == 0 else design.highest] * 3


def test_what_was_entered_before_a_refusal_is_shown_again(design):
    controls = Controls(shown(design)).found
    typed = {name: inputs[-1].get("max") or inputs[-1]["value"] for name, inputs in controls.items()}
    again = Controls(shown(design, typed=typed)).found
    for name, inputs in again.items():
        kept = [one["value"] for one in inputs if one["type"] != "radio" or "checked" in one]
        assert kept == [typed[name]]


def test_a_page_that_is_only_looked_at_has_nothing_to_send(design):
    assert 'type="submit"' in shown(design)
    assert 'type="submit"' not in shown(design, preview=True)
