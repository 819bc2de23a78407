"""Pauses of the garbage collector."""

import gc

import pytest

from app.background.collection_pause import pause_garbage_collection


@pytest.fixture(autouse=True)
def collector_is_on_again():
    was_on = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if was_on else gc.disable)()


def test_collections_go_on_after_the_last_of_overlapping_pauses():
    first, second = pause_garbage_collection(), pause_garbage_collection()
    first.__enter__()
    second.__enter__()
    assert not gc.isenabled()
    first.__exit__(None, None, None)
    assert not gc.isenabled()
    second.__exit__(None, None, None)
    assert gc.isenabled()


def test_a_decorated_function_runs_in_a_pause_each_time_and_ends_it_if_it_fails():
    @pause_garbage_collection()
    def fail() -> None:
        raise ValueError("off" if not gc.isenabled() else "on")

    for _ in range(2):
        with pytest.raises(ValueError, match="off"):
            fail()
        assert gc.isenabled()


def test_a_collector_that_is_off_stays_off():
    gc.disable()
    with pause_garbage_collection():
        assert not gc.isenabled()
    assert not gc.isenabled()
