"""Rows and columns of numbers by COPY come back as they went in."""

import asyncio
import gc
import tracemalloc
from contextlib import aclosing

import numpy as np
import pytest
from sqlalchemy import text

from app.database.bulk import (
    fetch_array_by_column,
    format_copy_line,
    insert_number_arrays_as_rows_by_copy,
    insert_text_lines_by_copy,
    iterate_prefetching_next,
    wait_for_both,
)
from app.database.tables import items, posteriors
from tests.annotation.hits.campaigns import fetch_rows, fetch_value
from tests.campaigns.drafts import create_draft, create_launched_campaign, import_items


async def test_no_character_of_an_uploaded_text_means_anything_to_copy(engine):
    texts = [r"back\slash", r"\N", r"\.", r"\t", "tab\there", "two\nlines", "a\r\nb", '"quoted", and more']
    content = "id,text\n" + "".join(f'{k},"{text.replace(chr(34), chr(34) * 2)}"\n' for k, text in enumerate(texts))
    await create_launched_campaign(engine, content)
    stored = await fetch_rows(engine, "SELECT shown, fields ->> 'text', prior FROM items ORDER BY number")
    assert stored == [(text, text, None) for text in texts]


async def test_rows_that_were_copied_are_not_kept_in_memory(engine):
    campaign = await create_draft(engine)
    columns = ("campaign_id", "number", "external_id", "shown", "fields")
    gc.collect()
    gc.disable()  # nothing else frees what refers to itself
    tracemalloc.start()
    try:
        async with engine.begin() as connection:
            for number in range(20):
                line = format_copy_line((campaign.id, number, str(number), "x" * 100_000, "{}"))
                await insert_text_lines_by_copy(connection, items, [line], *columns)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert await fetch_value(engine, "SELECT count(*) FROM items") == 20
    assert kept < 10 * 100_000


async def test_a_prior_of_its_own_keeps_all_its_bits(engine):
    content = f"id,text,alpha,beta\n1,a,{0.1 + 0.2!r},1e-6\n2,b,,\n3,c,123456.789,2.0000000000000004\n"
    await create_launched_campaign(engine, content, priors=True)
    assert await fetch_rows(engine, "SELECT state FROM current_posteriors ORDER BY number") == [
        ([0.1 + 0.2, 1e-6],),
        ([1.0, 1.0],),
        ([123456.789, 2.0000000000000004],),
    ]


async def test_numbers_come_back_with_their_bits_and_no_row_is_no_number(engine):
    rng = np.random.default_rng(1)
    columns = {"campaign_id": np.full(500, 7), "subject": np.arange(500, dtype=np.int32)}
    columns |= {"state": rng.random((500, 3))} | {name: rng.random(500) for name in ("score", "variance")}
    query = """
        SELECT subject, state[1], state[2], state[3], score, judgments FROM posteriors
        WHERE campaign_id = $1 ORDER BY subject
    """
    kinds = {"subject": "i4", "first": "f8", "second": "f8", "third": "f8", "score": "f8", "judgments": "i4"}
    async with engine.begin() as connection:
        await insert_number_arrays_as_rows_by_copy(connection, posteriors, columns)
        found = await fetch_array_by_column(connection, query, (7,), **kinds)
        nothing = await fetch_array_by_column(connection, query, (8,), **kinds)
    assert (found["subject"] == columns["subject"]).all()
    assert np.column_stack([found[name] for name in ("first", "second", "third")]).tobytes() == (
        columns["state"].tobytes()
    )
    assert found["score"].tobytes() == columns["score"].tobytes()
    assert not found["judgments"].any()
    assert [len(column) for column in nothing.values()] == [0] * 6


async def test_the_next_piece_is_made_while_one_is_used_and_none_is_left_behind():
    made: list[int] = []

    async def produce() -> int | None:
        made.append(len(made))
        await asyncio.sleep(0)
        return made[-1] if len(made) < 4 else None

    async with aclosing(iterate_prefetching_next(produce)) as pieces:
        assert await anext(pieces) == 0
        await asyncio.sleep(0)
        assert made == [0, 1]
        assert [piece async for piece in pieces] == [1, 2]


async def test_what_goes_wrong_in_making_a_piece_comes_out():
    async def produce() -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await anext(iterate_prefetching_next(produce))


async def test_a_refused_file_leaves_nothing_although_the_next_rows_were_being_read(engine):
    campaign = await create_launched_campaign(engine)
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE campaigns SET status = 'draft'"))
    content = "id,text\n" + "".join(f"n{k},a\n" for k in range(6_000)) + "n0,a\n"
    with pytest.raises(Exception, match="Line 6002"):
        await import_items(engine, campaign, content)
    assert await fetch_rows(engine, "SELECT count(*) FROM items") == [(6,)]


async def test_two_that_run_at_the_same_time_give_both_results():
    met = asyncio.Barrier(2)

    async def result_after_the_other_began(result: str) -> str:
        await met.wait()
        return result

    results = await asyncio.wait_for(
        wait_for_both(result_after_the_other_began("first"), result_after_the_other_began("second")), 10
    )
    assert results == ("first", "second")


@pytest.mark.parametrize("failing_first", [True, False])
async def test_if_one_of_two_fails_the_other_ends_before_the_failure_is_raised(failing_first):
    ended = []

    async def fail() -> None:
        raise ValueError("failed")

    async def work() -> None:
        await asyncio.sleep(0.01)
        ended.append(True)

    with pytest.raises(ValueError, match="failed"):
        await (wait_for_both(fail(), work()) if failing_first else wait_for_both(work(), fail()))
    assert ended == [True]
