import asyncio
import threading
from datetime import UTC, datetime, timedelta

import argon2
import httpx
import pytest
from pydantic import SecretStr
from sqlalchemy import insert, text

from app.accounts import login, passwords, users
from app.accounts.secrets import csrf_token_of_session, secret_digest
from app.accounts.throttle import (
    FAILURE_WINDOW_MINUTES,
    FREE_FAILURES_OF_SERVER,
    FREE_FAILURES_PER_ADDRESS,
    FREE_FAILURES_PER_NAME,
    MAX_DELAY_SECONDS,
)
from app.database.account_tables import login_failures
from app.errors import Conflict, Gone, Invalid, TooManyAttempts, Unauthenticated
from app.main import create_app
from tests.conftest import STRONG_PASSWORD_HASHER, http_client

NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
PASSWORD = "ten small verbs"


async def add(engine, name="ada", password=PASSWORD):
    async with engine.begin() as connection:
        user = await users.insert_and_return_user_or_refuse(connection, name, now=NOW)
        await users.store_password_and_end_other_sessions(
            connection, user.id, await passwords.hash_allowed_password_or_refuse(password), kept_session_digest=b""
        )
    return user


async def one_time(engine, *, now=NOW):
    async with engine.begin() as connection:
        return await login.create_one_time_login_and_return_secret(connection, now=now)


async def redeem(engine, token, *, now=NOW):
    async with engine.begin() as connection:
        return await login.use_up_login_and_return_user_id_or_refuse(connection, token, now=now)


async def attempt(engine, name="ada", password=PASSWORD, address="192.0.2.1", browser=None, *, now=NOW):
    return await login.authenticate_user_by_password_or_refuse(engine, name, password, address, browser, now=now)


async def test_the_right_password_lets_in_and_names_ignore_case(engine):
    user = await add(engine)
    assert (await attempt(engine, " Ada ")).id == user.id


@pytest.mark.parametrize(("name", "password"), [("ada", "ten large verbs"), ("bob", PASSWORD), ("ada", ""), ("", "")])
async def test_a_wrong_name_and_a_wrong_password_are_refused_in_the_same_words(engine, name, password):
    await add(engine)
    with pytest.raises(Unauthenticated, match="Wrong username or password") as refusal:
        await attempt(engine, name, password)
    assert refusal.value.code == "wrong_password"


async def test_a_user_without_password_cannot_log_in_with_any(engine):
    async with engine.begin() as connection:
        await users.insert_and_return_user_or_refuse(connection, "ada", now=NOW)
    for password in ("", "nobody has this password"):
        with pytest.raises(Unauthenticated):
            await attempt(engine, "ada", password)


async def test_passwords_are_stored_as_argon2id_only(engine):
    await add(engine)
    async with engine.connect() as connection:
        stored = (await connection.execute(text("SELECT password_hash FROM users"))).scalar_one()
    assert stored.startswith("$argon2id$")
    assert argon2.extract_parameters(STRONG_PASSWORD_HASHER.hash(PASSWORD)) == argon2.profiles.RFC_9106_LOW_MEMORY


async def failures(engine, number, *, name="ada", address="192.0.2.1", browser=None, now=NOW):
    async with engine.begin() as connection:
        rows = [{"name": name, "address": address, "browser": browser, "failed_at": now} for _ in range(number)]
        await connection.execute(insert(login_failures), rows)


async def seconds_to_wait(engine, **how):
    with pytest.raises(TooManyAttempts) as refusal:
        await attempt(engine, **how)
    return refusal.value.details["retry_after_seconds"]


async def test_after_some_failures_even_the_right_password_has_to_wait_longer_each_time(engine):
    await add(engine)
    await failures(engine, FREE_FAILURES_PER_NAME - 1)
    with pytest.raises(Unauthenticated):
        await attempt(engine, "ada", "wrong", "192.0.2.9")
    assert await seconds_to_wait(engine) == 1
    later = NOW + timedelta(seconds=1)
    with pytest.raises(Unauthenticated):
        await attempt(engine, "ada", "wrong", now=later)
    assert await seconds_to_wait(engine, now=later) == 2
    assert await attempt(engine, now=later + timedelta(seconds=2))


@pytest.mark.parametrize("number", [20, 1000])
async def test_nobody_waits_longer_than_a_few_minutes(engine, number):
    await add(engine)
    await failures(engine, number)
    assert await seconds_to_wait(engine) == MAX_DELAY_SECONDS
    assert await attempt(engine, now=NOW + timedelta(seconds=MAX_DELAY_SECONDS))


async def test_failures_are_forgotten_after_an_hour(engine):
    await failures(engine, 50)
    with pytest.raises(Unauthenticated):
        await attempt(engine, "nobody", "wrong", now=NOW + timedelta(minutes=FAILURE_WINDOW_MINUTES))
    async with engine.connect() as connection:
        assert await connection.scalar(text("SELECT count(*) FROM login_failures")) == 1


async def test_one_address_cannot_try_many_names(engine):
    await add(engine)
    for k in range(FREE_FAILURES_PER_ADDRESS):
        await failures(engine, 1, name=f"user{k}")
    assert await seconds_to_wait(engine) == 1
    assert await attempt(engine, address="192.0.2.2")


async def test_addresses_that_are_simulated_do_not_let_anyone_try_many_names(engine):
    await add(engine)
    for k in range(FREE_FAILURES_OF_SERVER):
        await failures(engine, 1, name=f"user{k}", address=f"198.51.100.{k}")
    assert await seconds_to_wait(engine, address="203.0.113.1") == 1


async def test_a_known_browser_waits_for_nobody_elses_failures(engine):
    await add(engine)
    await failures(engine, 500)
    assert await attempt(engine, browser="mine")
    await failures(engine, FREE_FAILURES_PER_NAME, browser="mine")
    assert await seconds_to_wait(engine, browser="mine") == 1
    assert await attempt(engine, browser="another of mine")


async def test_failures_of_a_known_browser_keep_nobody_else_waiting(engine):
    await add(engine)
    await failures(engine, 500, browser="theirs")
    assert await attempt(engine)


async def test_a_right_password_strikes_out_ones_own_failures_only(engine):
    await add(engine)
    await failures(engine, FREE_FAILURES_PER_NAME - 1)
    await failures(engine, 1, name="bob")
    assert await attempt(engine)
    async with engine.connect() as connection:
        assert await connection.scalar(text("SELECT array_agg(name) FROM login_failures")) == ["bob"]


async def test_a_name_that_is_too_long_is_cut_before_it_is_stored(engine):
    with pytest.raises(Unauthenticated):
        await attempt(engine, "n" * 900_000, "wrong")
    async with engine.connect() as connection:
        assert await connection.scalar(text("SELECT max(length(name)) FROM login_failures")) == 65


async def test_attempts_at_once_are_counted_one_after_another(engine, monkeypatch):
    looked_at = 0  # nobody outside sees whether a refused attempt was compared with the password first

    async def no(*_):
        nonlocal looked_at
        looked_at += 1
        return False

    monkeypatch.setattr(passwords, "is_password_correct", no)
    tries = [attempt(engine, "ada", "wrong", f"192.0.2.{k}") for k in range(3 * FREE_FAILURES_PER_NAME)]
    outcomes = await asyncio.gather(*tries, return_exceptions=True)
    assert looked_at == FREE_FAILURES_PER_NAME
    assert sum(isinstance(outcome, TooManyAttempts) for outcome in outcomes) == 2 * FREE_FAILURES_PER_NAME


async def test_a_session_that_nobody_uses_ends(engine):
    user = await add(engine)
    half = timedelta(minutes=15)
    async with engine.begin() as connection:
        session = await login.start_session_and_return_secret(connection, user.id, now=NOW, hours=2, idle_minutes=30)
        found = await login.load_login_session_or_none(connection, session, now=NOW + half)
        assert found is not None
        await login.postpone_idle_end_of_session(connection, found, now=NOW + half, idle_minutes_allowed=30)
        assert await login.load_login_session_or_none(connection, session, now=NOW + 2 * half)
        assert await login.load_login_session_or_none(connection, session, now=NOW + 3 * half) is None


async def test_a_page_that_asks_by_itself_is_not_somebody_at_work(app, researcher, engine):
    left = text("SELECT idle_at - clock_timestamp() < interval '2 minutes' FROM logins")
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE logins SET idle_at = clock_timestamp() + interval '1 minute'"))
    for headers, short in (({"x-easel": "fetch"}, True), ({}, False)):
        assert (await researcher.get("/admin", headers=headers)).status_code == 200
        async with engine.connect() as connection:
            assert await connection.scalar(left) is short


async def test_a_session_is_found_until_it_ends_and_only_its_digest_is_stored(engine):
    user = await add(engine)
    async with engine.begin() as connection:
        session = await login.start_session_and_return_secret(connection, user.id, now=NOW, hours=2)
        found = await login.load_login_session_or_none(connection, session, now=NOW + timedelta(minutes=119))
        assert found is not None
        assert found.name == "ada"
        assert await login.load_login_session_or_none(connection, session, now=NOW + timedelta(hours=2)) is None
        stored = (await connection.execute(text("SELECT token_hash FROM logins"))).scalar_one()
    assert stored == secret_digest(session)


async def test_ended_sessions_are_swept_out_at_the_next_login(engine):
    user = await add(engine)
    async with engine.begin() as connection:
        await login.start_session_and_return_secret(connection, user.id, now=NOW, hours=2)
        await login.start_session_and_return_secret(connection, user.id, now=NOW + timedelta(hours=3), hours=2)
        assert (await connection.execute(text("SELECT count(*) FROM logins"))).scalar_one() == 1


async def test_the_first_one_time_login_makes_admin(engine):
    user_id = await redeem(engine, await one_time(engine))
    async with engine.connect() as connection:
        assert (await users.load_user_or_refuse(connection, user_id)).name == "admin"


async def test_two_first_starts_at_once_make_one_admin(engine):
    await asyncio.gather(*(one_time(engine) for _ in range(4)))
    async with engine.connect() as connection:
        assert [user.name for user in await users.list_users(connection)] == ["admin"]


async def test_a_one_time_login_is_for_the_oldest_researcher(engine):
    ada = await add(engine)
    await add(engine, "bob")
    assert await redeem(engine, await one_time(engine)) == ada.id


async def test_a_one_time_login_works_once_even_when_two_come_at_once(engine):
    token = await one_time(engine)
    outcomes = await asyncio.gather(*(redeem(engine, token) for _ in range(5)), return_exceptions=True)
    assert sum(isinstance(outcome, int) for outcome in outcomes) == 1
    assert {outcome.code for outcome in outcomes if isinstance(outcome, Gone)} == {"login_link_used"}


async def test_a_one_time_login_ends_after_a_day(engine):
    token = await one_time(engine)
    with pytest.raises(Gone):
        await redeem(engine, token, now=NOW + timedelta(hours=login.ONE_TIME_LOGIN_HOURS))


async def test_one_time_logins_that_were_used_or_are_too_old_are_not_kept(engine):
    await redeem(engine, await one_time(engine))
    await one_time(engine)
    await one_time(engine, now=NOW + timedelta(hours=login.ONE_TIME_LOGIN_HOURS))
    async with engine.connect() as connection:
        assert await connection.scalar(text("SELECT count(*) FROM one_time_logins")) == 1


async def test_unusable_names_are_refused(engine, subtests):
    for name in ("", "-", "a b", "Ädа", "a" * 65, "a\nb", "n7@evil.org@lab.org", "ada@-lab.org"):
        with subtests.test(name=name):
            async with engine.connect() as connection:
                with pytest.raises(Invalid) as refusal:
                    await users.insert_and_return_user_or_refuse(connection, name, now=NOW)
            assert refusal.value.code == "user_name_invalid"


async def test_a_name_is_taken_once(engine):
    await add(engine)
    async with engine.connect() as connection:
        with pytest.raises(Conflict):
            await users.insert_and_return_user_or_refuse(connection, "ADA", now=NOW)


@pytest.mark.parametrize(("password", "code"), [("nine char", "password_too_short"), ("x" * 1001, "password_too_long")])
async def test_passwords_have_a_length(password, code):
    with pytest.raises(Invalid) as refusal:
        await passwords.hash_allowed_password_or_refuse(password)
    assert refusal.value.code == code


async def test_hashing_leaves_the_event_loop_free(monkeypatch):
    the_loop_went_on = threading.Event()

    class Slow:
        def verify(self, *_):
            return the_loop_went_on.wait(60)

    monkeypatch.setattr(passwords, "PASSWORD_HASHER", Slow())
    checking = asyncio.create_task(passwords.is_password_correct("a hash", "whatever"))
    await asyncio.sleep(0)
    the_loop_went_on.set()
    assert await checking


async def page_of(client: httpx.AsyncClient, path: str) -> str:
    response = await client.get(path)
    assert response.status_code == 200
    return response.text


async def test_logging_in_by_password_sets_a_cookie_and_goes_where_one_wanted(client, engine):
    await add(engine)
    fields = {"name": "ada", "password": PASSWORD, "next": "/admin/account?done=password"}
    response = await client.post("/login", data=fields)
    assert response.status_code == 303
    assert response.headers["location"] == "/admin/account?done=password"
    cookie = response.headers["set-cookie"].lower()
    for part in ("httponly", "samesite=lax", "path=/", "max-age=43200"):
        assert part in cookie
    assert "secure" not in cookie
    assert "ada" in await page_of(client, "/admin/account")


async def test_two_easels_on_one_host_leave_each_other_logged_in(app, engine):
    """A browser sends both the cookies of the host, whichever port set them."""
    await add(engine)
    key = SecretStr("the key of another installation")
    other = create_app(app.state.settings.model_copy(update={"secret_key": key}))
    async with other.router.lifespan_context(other), http_client(app) as here, http_client(other) as there:
        for client in (here, there):
            await client.post("/login", data={"name": "ada", "password": PASSWORD})
        here.cookies = there.cookies = httpx.Cookies({**dict(here.cookies), **dict(there.cookies)})
        await there.post("/logout", data={"csrf": csrf_token_of_session(there.cookies[other.state.cookie_name])})
        assert (await here.get("/admin")).status_code == 200
        assert (await there.get("/admin")).status_code == 303


async def test_the_name_of_the_cookie_stays_over_a_restart(app):
    again = create_app(app.state.settings)
    async with again.router.lifespan_context(again):
        assert again.state.cookie_name == app.state.cookie_name


@pytest.mark.parametrize("name", ["easel.test", "a-name-that-nobody-told-us.test"])
async def test_the_cookie_is_secure_over_https(client, engine, name):
    await add(engine)
    response = await client.post(f"https://{name}/login", data={"name": "ada", "password": PASSWORD})
    assert "secure" in response.headers["set-cookie"].lower()


@pytest.mark.parametrize(
    "target",
    ["https://evil.test/", "//evil.test/admin", "/\\evil.test", "/administrator", "javascript:alert(1)", "", "admin"],
)
async def test_after_login_nobody_is_sent_to_another_site(client, engine, target):
    await add(engine)
    response = await client.post("/login", data={"name": "ada", "password": PASSWORD, "next": target})
    assert response.headers["location"] == "/admin"


async def test_a_refused_login_shows_the_form_with_the_name_and_no_password(client, engine):
    response = await client.post("/login", data={"name": "<ada>", "password": "wrong password"})
    assert response.status_code == 401
    assert 'value="&lt;ada&gt;"' in response.text
    assert "Wrong username or password" in response.text
    assert "wrong password" not in response.text
    assert "set-cookie" not in response.headers


async def test_who_tried_too_often_is_told_when_to_come_back(client, engine):
    await add(engine)
    await failures(engine, 500, now=datetime.now(UTC))
    fields = {"name": "ada", "password": "wrong password"}
    for refused in (await client.post("/login", data=fields), await client.post("/api/v1/tokens", json=fields)):
        assert refused.status_code == 429
        assert MAX_DELAY_SECONDS - 60 < int(refused.headers["retry-after"]) <= MAX_DELAY_SECONDS


async def test_a_browser_that_someone_logged_in_with_is_not_locked_out_by_others(app, client, engine):
    await add(engine)
    await add(engine, "bob")
    fields = {"name": "Ada ", "password": PASSWORD}
    assert (await client.post("/login", data=fields)).status_code == 303
    await failures(engine, 500, now=datetime.now(UTC))
    assert (await client.post("/login", data=fields)).status_code == 303
    assert (await client.post("/login", data=fields | {"name": "bob"})).status_code == 429  # it is known for ada alone
    client.cookies = httpx.Cookies({f"{app.state.cookie_name}_known": "made up"})
    assert (await client.post("/login", data=fields)).status_code == 429


async def test_a_long_name_is_not_echoed_whole(client):
    reply = await client.post("/login", data={"name": "n" * 500_000, "password": "wrong"})
    assert reply.status_code == 401
    assert len(reply.content) < 20_000


async def test_another_site_cannot_log_a_visitor_in(client, engine):
    await add(engine)
    fields = {"name": "ada", "password": PASSWORD}
    response = await client.post("/login", data=fields, headers={"sec-fetch-site": "cross-site"})
    assert response.status_code == 403
    assert "set-cookie" not in response.headers


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "https://evil.test"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "https://evil.test", "sec-fetch-site": "none"}, 403),
        ({"origin": "http://easel.test"}, 303),
        ({"origin": "null", "sec-fetch-site": "same-origin"}, 303),
    ],
)
async def test_a_browser_that_tells_only_the_origin_is_heard(client, engine, headers, status):
    await add(engine)
    reply = await client.post("/login", data={"name": "ada", "password": PASSWORD}, headers=headers)
    assert reply.status_code == status


async def test_the_login_page_asks_browsers_to_tell_their_origin_and_no_other_page_does(client):
    assert (await client.get("/login")).headers["referrer-policy"] == "same-origin"
    assert (await client.get("/nothing")).headers["referrer-policy"] == "no-referrer"


async def test_opening_a_one_time_link_does_not_use_it_up(app, client, engine):
    token = await one_time(engine, now=datetime.now(UTC))
    for _ in range(3):
        assert token in await page_of(client, login.one_time_login_path(token))
    response = await client.post("/login", data={"token": token})
    assert response.headers["location"] == "/admin"
    assert response.cookies[app.state.cookie_name]


async def test_a_used_link_says_so_and_offers_the_form(client, engine):
    response = await client.post("/login", data={"token": "unknown"})
    assert response.status_code == 410
    assert "has been used" in response.text
    assert "`" not in response.text
    assert response.text.count("login</code>") == 1  # how to make a new link is said once
    assert 'name="password"' in response.text


async def test_many_who_log_out_at_once_do_not_wait_for_each_other(app, client):
    async with asyncio.timeout(app.state.database.pool.timeout() / 2):
        at_once = 3 * app.state.database.pool.size()
        replies = await asyncio.gather(*(client.post("/logout") for _ in range(at_once)))
    assert {reply.status_code for reply in replies} == {303}


@pytest.mark.parametrize("typed", ["\u212aim", "k\u0131m", "KIM\u0130"])
def test_no_letter_of_another_alphabet_becomes_one_of_a_login_name(typed):
    assert users.normalize_typed_name(typed) == typed
    with pytest.raises(Invalid, match="only the letters a to z"):
        users.normalize_login_name_or_refuse(typed)
    assert users.normalize_typed_name(" Kim ") == users.normalize_login_name_or_refuse(" Kim ") == "kim"
