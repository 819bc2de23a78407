"""The migrations, forwards and backwards, on the server the app runs on."""

import asyncio
import gzip
from dataclasses import replace
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import NullPool, inspect
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from app.annotation.hits.submission import submit_answer
from app.database.migrate import alembic_configuration, upgrade_schema
from app.database.schema import metadata
from app.database.session import borrow_autocommit_driver
from app.designs.answer import Answer, Touch
from app.record.revisions import record_decision, revise_posteriors
from app.simulation import rehearsals
from app.simulation.annotators import plain_population
from tests.annotation.hits.campaigns import NOW, annotator, hit_of, running, values
from tests.annotation.hits.criteria import answered, asking
from tests.campaigns.drafts import draft, import_results, is_clean, launched


def tables(url: str) -> set[str]:
    async def look() -> set[str]:
        engine = create_async_engine(url, poolclass=NullPool)
        async with engine.connect() as connection:
            names = await connection.run_sync(lambda it: set(inspect(it).get_table_names()))
        await engine.dispose()
        return names - {"alembic_version"}

    return asyncio.run(look())


def test_the_migrations_make_the_tables_the_code_knows(database_url):
    assert tables(database_url) == set(metadata.tables)
    command.check(alembic_configuration(database_url))  # raises when a column, index or default differs


@pytest.mark.own_database
def test_down_leaves_nothing_and_up_again_makes_the_same(database_url):
    command.downgrade(alembic_configuration(database_url), "base")
    assert tables(database_url) == set()
    upgrade_schema(database_url)
    command.check(alembic_configuration(database_url))


@pytest.mark.own_database
async def test_what_easl_aware_had_learned_is_carried_over(engine, database_url):
    """Before, an item had one list, with places for what others said of judgments that were not looked at yet."""
    campaign = await launched(engine, update_law="easl-aware", judgments_per_item=1000)
    rows = "".join(f"W{k % 5},v0,v1,{k},{99 - k}\n" for k in range(72))
    await import_results(engine, campaign, "WorkerId,Input.id1,Input.id2,Answer.range1,Answer.range2\n" + rows)
    learned = "SELECT kind, number, state, since FROM states ORDER BY kind, number"
    before = await values(engine, learned)
    parts = "SELECT octet_length(state) / 80, octet_length(since) / 16 - 1 FROM states WHERE kind = 'item'"
    assert {looked + new for looked, new in await values(engine, parts)} == {72}
    assert any(new for _, new in await values(engine, parts))
    await engine.dispose()
    await asyncio.to_thread(command.downgrade, alembic_configuration(database_url), "0009")
    lengths = "SELECT DISTINCT octet_length(state) FROM learned WHERE kind = 'item'"
    assert await values(engine, lengths) == [(16 + 72 * 80,)]
    await engine.dispose()
    await asyncio.to_thread(upgrade_schema, database_url)
    assert await values(engine, learned) == before
    assert await is_clean(engine, campaign.slug)


@pytest.mark.own_database
async def test_how_an_answer_came_about_is_carried_over(engine, database_url):
    campaign = await running(engine, items_per_hit=2)
    touched = Answer({}, {}, "390x844", "page")
    for k, touches in enumerate(({}, {0: Touch(1200, 3, "touch")}, {0: Touch(input_kind="keyboard"), 1: Touch(7)})):
        me = await annotator(engine, campaign, f"ann {k}")
        hit = await hit_of(engine, me)
        answer = replace(
            touched if k else Answer({}),
            values=dict.fromkeys(hit.items, 50.0),
            touches={hit.items[place]: touch for place, touch in touches.items()},
        )
        async with borrow_autocommit_driver(engine) as connection:
            await submit_answer(connection, me, hit.id, answer, now=NOW)
    told = "SELECT seq, telemetry::text FROM responses ORDER BY seq"
    before = await values(engine, told)
    await engine.dispose()
    await asyncio.to_thread(command.downgrade, alembic_configuration(database_url), "0010")
    columns = "SELECT first_touch_ms, changes, input_kinds, viewport FROM responses ORDER BY seq"
    assert await values(engine, columns) == [
        (None, None, None, None),
        ([1200, None], [3, None], ["touch", None], "390x844"),
        ([None, 7], None, ["keyboard", None], "390x844"),
    ]
    await engine.dispose()
    await asyncio.to_thread(upgrade_schema, database_url)
    assert await values(engine, told) == before


@pytest.mark.own_database
async def test_priors_and_posteriors_are_carried_over_and_a_draft_that_chose_no_prior_has_none(engine, database_url):
    for law in ("easl", "trueskill"):
        await draft(engine, name=f"{law} with its own", update_law=law)
        await draft(engine, name=f"{law} with another", update_law=law, prior=[0.25, 2])
    campaign = await launched(engine, "id,text,mu,sigma2\n1,a,-0.5,0.25\n2,b,,\n", priors=True, update_law="trueskill")
    told = "SELECT name, prior FROM campaigns ORDER BY id"
    posteriors = "SELECT subject, revision, criterion, state, score, variance, judgments FROM posteriors ORDER BY 1"
    known = (told, "SELECT prior FROM items ORDER BY number", posteriors)
    before = [await values(engine, statement) for statement in known]
    assert [prior for _, prior in before[0]] == [None, [0.25, 2], None, [0.25, 2], [0.5, 1 / 12]]
    await engine.dispose()
    await asyncio.to_thread(command.downgrade, alembic_configuration(database_url), "0011")
    of_two_columns = await values(engine, "SELECT prior_a, prior_b FROM campaigns ORDER BY id")
    assert of_two_columns == [(1, 1), (0.25, 2), (0.5, 1 / 12), (0.25, 2), (0.5, 1 / 12)]
    assert await values(engine, "SELECT prior_a, prior_b FROM items ORDER BY number") == [(-0.5, 0.25), (None, None)]
    assert await values(engine, "SELECT a, b FROM priors ORDER BY number") == [(-0.5, 0.25), (0.5, 1 / 12)]
    assert await values(engine, "SELECT a, b FROM posteriors ORDER BY number") == [(-0.5, 0.25), (0.5, 1 / 12)]
    await engine.dispose()
    await asyncio.to_thread(upgrade_schema, database_url)
    assert [await values(engine, statement) for statement in known] == before
    assert await is_clean(engine, campaign.slug)


@pytest.mark.own_database
async def test_what_follows_from_the_present_decisions_stays_when_they_are_forgotten(engine, database_url):
    campaign = await running(engine, update_law="easl-aware", judgments_per_item=50)
    for k in range(4):
        me = await annotator(engine, campaign, f"ann {k}")
        async with borrow_autocommit_driver(engine) as connection:
            hit = await hit_of(engine, me)
            await submit_answer(connection, me, hit.id, Answer(dict.fromkeys(hit.items, 20.0 * k)), now=NOW)
    somebody = (await values(engine, "SELECT min(id) FROM annotators"))[0][0]
    async with engine.begin() as connection:
        await record_decision(connection, campaign, "exclude", "annotator", somebody, reason="", actor="ada", now=NOW)
    await revise_posteriors(engine, campaign.id, now=NOW)
    posteriors = "SELECT state[1], state[2], score, judgments FROM posteriors ORDER BY subject"
    before = await values(engine, posteriors)
    states = await values(engine, "SELECT kind, number, state, since FROM states ORDER BY kind, number")
    await engine.dispose()
    await asyncio.to_thread(command.downgrade, alembic_configuration(database_url), "0011")
    assert await values(engine, "SELECT a, b, score, judgments FROM posteriors ORDER BY number") == before
    assert await values(engine, "SELECT kind, number, state, since FROM learned ORDER BY kind, number") == states
    await engine.dispose()
    await asyncio.to_thread(upgrade_schema, database_url)
    assert await values(engine, "SELECT DISTINCT revision, layout FROM states") == [(0, 1)]
    assert (
        await values(engine, "SELECT state[1], state[2], score, judgments FROM posteriors ORDER BY subject") == before
    )


@pytest.mark.own_database
async def test_rehearsals_do_not_become_campaigns_when_their_mark_goes(engine, database_url):
    campaign = await running(engine)
    async with engine.begin() as connection:
        crowd = rehearsals.RehearsalCrowd(annotators=2, population=plain_population(0.1), truth_column=None)
        copy, _ = await rehearsals.begin_rehearsal(connection, campaign.slug, crowd, now=NOW)
    me = await annotator(engine, copy)
    async with borrow_autocommit_driver(engine) as connection:
        hit = await hit_of(engine, me)
        await submit_answer(connection, me, hit.id, Answer(dict.fromkeys(hit.items, 50.0)), now=NOW)
    await engine.dispose()
    await asyncio.to_thread(command.downgrade, alembic_configuration(database_url), "0015")
    for of in (
        "SELECT id FROM campaigns",
        *(f"SELECT DISTINCT campaign_id FROM {it}" for it in ("items", "posteriors")),
    ):
        assert await values(engine, of) == [(campaign.id,)]
    assert await values(engine, "SELECT 1 FROM responses") == []


@pytest.mark.own_database
async def test_what_was_answered_by_the_first_criterion_stays_when_criteria_are_forgotten(engine, database_url):
    campaign = await asking(engine, update_law="easl-aware")
    await answered(engine, campaign, touched=True)
    first = "SELECT number, state, judgments FROM current_posteriors ORDER BY number"
    before = await values(engine, first.replace("ORDER", "WHERE criterion = 0 ORDER"))
    await engine.dispose()
    await asyncio.to_thread(command.downgrade, alembic_configuration(database_url), "0019")
    assert await values(engine, first) == before
    assert await values(engine, "SELECT question FROM campaigns") == [("How is its adequacy?",)]
    places = "SELECT jsonb_array_length(telemetry -> 'changes') - cardinality(items), telemetry ->> 'viewport'"
    assert {*await values(engine, f"{places} FROM responses")} == {(0, "390x844")}
    await engine.dispose()
    await asyncio.to_thread(upgrade_schema, database_url)
    assert await is_clean(engine, campaign.slug)


def test_a_second_upgrade_changes_nothing(database_url):
    upgrade_schema(database_url)
    assert tables(database_url) == set(metadata.tables)


# Dumps by pg_dump, made by `easel simulate` and an import of results: a campaign of each law, and a draft.
STORED = Path(__file__).parent / "stored"


@pytest.mark.own_database
@pytest.mark.parametrize("dump", sorted(STORED.glob("*.sql.gz")), ids=lambda path: path.name.partition(".")[0])
async def test_a_database_of_an_earlier_version_keeps_its_data_and_verifies_clean(engine, database_url, dump):
    async with borrow_autocommit_driver(engine) as connection:
        await connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        await connection.execute(gzip.decompress(dump.read_bytes()).decode() + "SET search_path = public")
        before = await counted(engine)
    await engine.dispose()
    await asyncio.to_thread(upgrade_schema, database_url)
    await asyncio.to_thread(command.check, alembic_configuration(database_url))
    assert await counted(engine) == before
    laws = await values(engine, "SELECT update_law, slug FROM campaigns WHERE status <> 'draft' ORDER BY id")
    assert [law for law, _ in laws] == ["easl", "ra", "trueskill", "easl-aware"]
    assert all([await is_clean(engine, slug) for _, slug in laws])


async def counted(engine: AsyncEngine) -> list[tuple[int, ...]]:
    """Of each campaign, how many items, annotators, HITs, answers and judgments it has."""
    return await values(
        engine,
        """
        SELECT id, (SELECT count(*) FROM public.items WHERE campaign_id = c.id),
               (SELECT count(*) FROM public.annotators WHERE campaign_id = c.id),
               (SELECT count(*) FROM public.hits WHERE campaign_id = c.id),
               (SELECT count(*) FROM public.responses WHERE campaign_id = c.id),
               (SELECT sum(judgments) FROM public.posteriors WHERE campaign_id = c.id)
        FROM public.campaigns c ORDER BY id
        """,
    )
