"""Settings: what the environment may say, and what is said when it is wrong."""

from pathlib import Path

import pytest

from app.settings import (
    SECRET_SETTINGS,
    Settings,
    SettingsProblem,
    environment_variable_name,
    read_settings,
    secret_file_variable_name,
)
from app.unknown_settings import iterate_unknown_setting_sentences


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for field in Settings.model_fields:
        monkeypatch.delenv(environment_variable_name(field), raising=False)
        monkeypatch.delenv(secret_file_variable_name(field), raising=False)


def problem(monkeypatch: pytest.MonkeyPatch, **environment: str) -> str:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsProblem) as raised:
        read_settings()
    return str(raised.value)


def test_without_an_environment_it_serves_this_machine_only():
    settings = read_settings()
    assert (settings.host, settings.port, settings.database_url) == ("127.0.0.1", 8000, None)


@pytest.mark.parametrize(
    ("given", "understood"),
    [
        ("postgres://u:p@h/d", "postgresql+asyncpg://u:p@h/d"),
        ("postgresql://u:p%40ss@h:5433/d", "postgresql+asyncpg://u:p%40ss@h:5433/d"),
        ("postgresql+asyncpg://u@/d?host=/run/pg", "postgresql+asyncpg://u@/d?host=%2Frun%2Fpg"),
        ("postgresql://h/d?sslmode=require", "postgresql+asyncpg://h/d?ssl=require"),
    ],
)
def test_every_spelling_of_a_postgresql_address_is_understood(monkeypatch, given, understood):
    monkeypatch.setenv("DATABASE_URL", given)
    assert read_settings().database_url == understood


def test_another_dialect_is_refused(monkeypatch):
    assert problem(monkeypatch, DATABASE_URL="mysql://u:p@h/d") == (
        "DATABASE_URL names mysql, but Easel works only with PostgreSQL (postgresql://...)"
    )


def test_the_password_of_a_wrong_address_is_not_repeated(monkeypatch):
    assert "geheim" not in problem(monkeypatch, DATABASE_URL="u:geheim")


def test_the_password_is_not_shown_with_the_settings(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:geheim@h/d")
    monkeypatch.setenv("EASEL_SECRET_KEY", "geheim" * 8)
    assert "geheim" not in repr(read_settings())


def test_every_wrong_variable_is_named_in_one_line(monkeypatch):
    line = problem(monkeypatch, EASEL_PORT="http", EASEL_WORKERS="0")
    assert line.startswith("EASEL_PORT should be a valid integer")
    assert "EASEL_WORKERS should be greater than or equal to 1" in line
    assert "\n" not in line


def test_a_short_key_is_refused_and_a_long_one_taken(monkeypatch):
    assert "EASEL_SECRET_KEY needs 32 characters" in problem(monkeypatch, EASEL_SECRET_KEY="short")
    monkeypatch.setenv("EASEL_SECRET_KEY", "k" * 32)
    key = read_settings().secret_key
    assert key is not None
    assert key.get_secret_value() == "k" * 32


def test_lists_are_separated_by_commas_or_spaces(monkeypatch):
    monkeypatch.setenv("EASEL_MTURK_SUBMIT_ORIGINS", "https://A.example, http://127.0.0.1:9000 http://[::1]:9")
    monkeypatch.setenv("EASEL_PROXIES", "10.0.0.1 10.0.0.2")
    settings = read_settings()
    assert settings.mturk_submit_origins == ("https://a.example", "http://127.0.0.1:9000", "http://[::1]:9")
    assert settings.proxies == ("10.0.0.1", "10.0.0.2")


@pytest.mark.parametrize(
    "origin",
    [
        "*",
        "example.org",
        "javascript:alert(1)",
        "https://a.example/path",
        "https://a.example?b",
        "https://a.example;script-src",
        "https://user@a.example",
        "https://a.example:port",
    ],
)
def test_what_is_not_an_origin_is_refused(monkeypatch, origin):
    assert "EASEL_FRAME_ANCESTORS" in problem(monkeypatch, EASEL_FRAME_ANCESTORS=origin)


def test_the_public_address_loses_its_last_slash(monkeypatch):
    monkeypatch.setenv("EASEL_PUBLIC_URL", "https://lab.example/")
    assert read_settings().public_url == "https://lab.example"


def test_a_public_address_below_a_path_is_refused_because_pages_link_to_the_root(monkeypatch):
    assert problem(monkeypatch, EASEL_PUBLIC_URL="https://lab.example/easel/") == (
        "EASEL_PUBLIC_URL 'https://lab.example/easel/' has a path, but Easel needs a host name or a port of its own, "
        "such as https://easel.example.org"
    )


@pytest.mark.parametrize("proxy", ["*", "10.0.0.1", "10.0.0.0/8", "::1", "fd00::/8"])
def test_a_proxy_is_an_ip_address_or_a_network(monkeypatch, proxy):
    monkeypatch.setenv("EASEL_PROXIES", proxy)
    assert read_settings().proxies == (proxy,)


@pytest.mark.parametrize("proxy", ["nginx", "proxy.example.org", "10.0.0.1:80", "10.0.0.5/8"])
def test_a_proxy_that_would_never_be_recognised_is_refused(monkeypatch, proxy):
    assert problem(monkeypatch, EASEL_PROXIES=f"127.0.0.1,{proxy}") == (
        f"EASEL_PROXIES '{proxy}' is not an IP address or network such as 10.0.0.1 or 10.0.0.0/8"
    )


@pytest.mark.parametrize("name", ["EASEL_OIDC_CLIENT_ID", "EASEL_OIDC_DOMAINS"])
def test_settings_of_a_provider_without_its_issuer_are_refused(monkeypatch, name):
    assert problem(monkeypatch, **{name: "lab.example"}) == f"{name} needs EASEL_OIDC_ISSUER"


def test_a_misspelled_variable_is_named_with_the_setting_that_it_resembles():
    environment = {"EASEL_WORKRES": "4", "EASEL_COLOUR": "red", "EASEL_PORT": "1", "HOME": "/"}
    assert list(iterate_unknown_setting_sentences(environment)) == [
        "EASEL_COLOUR is not a setting and has no effect.",
        "EASEL_WORKRES is not a setting and has no effect. Did you mean EASEL_WORKERS?",
    ]


def test_every_setting_and_every_file_of_a_secret_is_known():
    names = [environment_variable_name(field) for field in Settings.model_fields]
    files = [secret_file_variable_name(field) for field in SECRET_SETTINGS]
    others = ["EASEL_SERVICE_TOKEN_LAB", "EASEL_PUBLISH", "EASEL_MEMORY"]
    assert list(iterate_unknown_setting_sentences(dict.fromkeys([*names, *files, *others], "x"))) == []


def test_a_password_with_an_at_sign_is_not_taken_for_a_host_and_not_repeated(monkeypatch):
    message = problem(monkeypatch, DATABASE_URL="postgresql://easel:p@geheim/w:rd@127.0.0.1/easel")
    assert "geheim" not in message
    assert message.endswith("Write @ as %40, / as %2F and : as %3A in a user name or password")


@pytest.mark.parametrize("address", ["lab.example", "https://lab.example/?a=b", "ftp://lab.example", "https://"])
def test_a_public_address_that_links_cannot_start_with_is_refused(monkeypatch, address):
    assert "EASEL_PUBLIC_URL" in problem(monkeypatch, EASEL_PUBLIC_URL=address)


def test_an_empty_variable_counts_as_not_set(monkeypatch):
    monkeypatch.setenv("EASEL_PORT", "")
    assert read_settings().port == 8000


def test_data_lie_where_the_desktop_specification_says(monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", "/somewhere")
    assert read_settings().data_dir == Path("/somewhere/easel")
    monkeypatch.delenv("XDG_DATA_HOME")
    assert read_settings().data_dir == Path.home() / ".local/share/easel"


def test_each_setting_has_a_description():
    assert all(field.description for field in Settings.model_fields.values())


def test_settings_can_be_made_by_name_in_code():
    assert Settings(database_url="postgres://h/d", port=0).database_url == "postgresql+asyncpg://h/d"


def test_an_unknown_name_in_code_is_an_error():
    with pytest.raises(ValueError, match="prot"):
        Settings(prot=1)  # type: ignore[call-arg]  # misspelt: that is the test


@pytest.mark.parametrize("sender", ["easel@example.org", "Easel of the lab <easel@example.org>"])
def test_mails_come_from_an_address_perhaps_with_a_name(monkeypatch, sender):
    monkeypatch.setenv("EASEL_SMTP_FROM", sender)
    assert read_settings().smtp_from == sender


@pytest.mark.parametrize("sender", ["easel", "=?utf-8?q?=0d=0a?=@b.c", "a@b.org, c@d.org", "Easel <easel@b.org"])
def test_a_sender_that_no_mail_can_come_from_is_refused_at_the_start(monkeypatch, sender):
    assert "EASEL_SMTP_FROM" in problem(monkeypatch, EASEL_SMTP_FROM=sender)


SECRETS = {
    "database_url": "postgresql+asyncpg://easel:secret@db/easel",
    "secret_key": "7f3a9c01d2e4b5860f1c2d3e4a5b6978",
    "oidc_client_secret": "of the provider",
    "smtp_url": "smtps://name:password@mail.example.org",
    "metrics_token": "0f1c2d3e4a5b69787f3a9c01d2e4b586",
}


def test_every_secret_can_be_in_a_file(monkeypatch, tmp_path):
    for field, secret in SECRETS.items():
        (tmp_path / field).write_text(secret + "\n")
        monkeypatch.setenv(secret_file_variable_name(field), str(tmp_path / field))
    settings = read_settings()
    read = {field: getattr(settings, field) for field in SECRET_SETTINGS}
    assert {
        field: getattr(value, "get_secret_value", lambda value=value: value)() for field, value in read.items()
    } == (SECRETS)
    secret_types = {name for name, field in Settings.model_fields.items() if "SecretStr" in str(field.annotation)}
    assert {*SECRET_SETTINGS} == secret_types | {"database_url"}


def test_a_secret_file_that_cannot_be_used_is_named_without_its_contents(monkeypatch, tmp_path):
    path = tmp_path / "key"
    assert "EASEL_SECRET_KEY_FILE" in problem(monkeypatch, EASEL_SECRET_KEY_FILE=str(path))
    path.write_text("\n")
    assert "empty" in problem(monkeypatch, EASEL_SECRET_KEY_FILE=str(path))
    path.write_bytes(b"\xff" * 40)
    assert "UTF-8" in problem(monkeypatch, EASEL_SECRET_KEY_FILE=str(path))
    path.write_text("too short")
    said = problem(monkeypatch, EASEL_SECRET_KEY_FILE=str(path))
    assert "EASEL_SECRET_KEY" in said
    assert "too short" not in said


def test_a_secret_that_is_set_twice_is_refused(monkeypatch, tmp_path):
    (tmp_path / "key").write_text("k" * 40)
    said = problem(monkeypatch, EASEL_SECRET_KEY="j" * 40, EASEL_SECRET_KEY_FILE=str(tmp_path / "key"))
    assert "both set" in said
