"""What every design promises, those of the tests too: a new one is checked by being registered."""

from pathlib import Path

import numpy as np
import pytest

from app.designs.answer import Answer
from app.designs.registry import DESIGNS
from app.errors import Invalid
from tests.toys import TEMPLATES
from tests.toys.smiley import SMILEY

ITEMS = [7, 3, 5]
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
