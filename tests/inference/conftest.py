import pytest

from app.inference.online.item_law import ItemLaw
from app.inference.online.law import Law
from tests.laws import OF_POINTS


@pytest.fixture(params=sorted(OF_POINTS))
def law(request) -> Law:
    return OF_POINTS[request.param]


@pytest.fixture(params=sorted(name for name, law in OF_POINTS.items() if isinstance(law, ItemLaw)))
def item_law(request) -> ItemLaw:
    law = OF_POINTS[request.param]
    assert isinstance(law, ItemLaw)
    return law
