"""What all processes of one installation share."""

from pydantic import SecretStr

from app.main import secret_key
from app.settings import Settings


async def test_processes_share_a_key_that_the_first_of_them_made(engine):
    first, second = [await secret_key(engine, Settings()) for _ in range(2)]
    assert first == second
    assert len(first) == 64


async def test_the_operators_key_is_used_as_it_is(engine):
    assert await secret_key(engine, Settings(secret_key=SecretStr("k" * 32))) == "k" * 32
