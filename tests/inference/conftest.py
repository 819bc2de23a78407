import pytest

from app.inference.online.laws import ONLINE, Law


@pytest.fixture(params=sorted(name for name, law in ONLINE.items() if law.update))
def law(request) -> Law:
    return ONLINE[request.param]
