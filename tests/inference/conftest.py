import pytest

from app.inference.online.item_law import ItemLaw
from app.inference.online.law import Law
from app.inference.online.laws import ONLINE


@pytest.fixture(params=sorted(ONLINE))
def law(request) -> Law:
    return ONLINE[request.param]


@pytest.fixture(params=sorted(name for name, law in ONLINE.items() if isinstance(law, ItemLaw)))
def item_law(request) -> ItemLaw:
    law = ONLINE[request.param]
    assert isinstance(law, ItemLaw)
    return law
