"""The toy refuses a smiley that it does not have."""

import pytest

from app.designs.answer import Form
from app.errors import Invalid
from tests.toys.smiley import Smiley


def test_a_face_that_does_not_exist_is_refused():
    answer = Smiley().parse_answer(Form({"face-00": "7", "face-01": "0"}, source="form"), items=[5, 3])
    with pytest.raises(Invalid) as refusal:
        Smiley().checked_values_in_item_order_or_refuse(answer, [5, 3])
    assert refusal.value.code == "score_out_of_range"
