"""The forms in which the address of a database is written."""

import pytest

from app.text.postgres_address import AddressProblem, parse_postgres_address

TWO = (("h1", 5433), ("h2", 5434))
WRITES = {"target_session_attrs": "read-write"}
ANY = {"target_session_attrs": "any"}


@pytest.mark.parametrize(
    ("url", "hosts", "parameters"),
    [
        pytest.param("postgresql://h/d", (("h", None),), {}, id="a name"),
        pytest.param("postgresql://10.0.0.7:5433/d", (("10.0.0.7", 5433),), {}, id="an address and a port"),
        pytest.param("postgresql://[::1]/d", (("::1", None),), {}, id="IPv6"),
        pytest.param("postgresql://[2001:db8::7]:5433/d", (("2001:db8::7", 5433),), {}, id="IPv6 and a port"),
        pytest.param("postgresql:///d?host=::1&port=5433", (("::1", 5433),), {}, id="IPv6 as a parameter"),
        pytest.param("postgresql://%2Frun%2Fpg/d", (("/run/pg", None),), {}, id="a socket in the place of a host"),
        pytest.param("postgresql://%2Frun%2Fpg:5433/d", (("/run/pg", 5433),), {}, id="a socket and a port"),
        pytest.param("postgresql:///d?host=/run/pg&port=5433", (("/run/pg", 5433),), {}, id="a socket as a parameter"),
        pytest.param("postgresql:///d", ((None, None),), {}, id="the usual server"),
        pytest.param("postgresql://h1:5433,h2:5434/d", TWO, WRITES, id="two hosts"),
        pytest.param("postgresql:///d?host=h1:5433&host=h2:5434", TWO, WRITES, id="two hosts, as SQLAlchemy has it"),
        pytest.param("postgresql:///d?host=h1,h2&port=5433,5434", TWO, WRITES, id="two hosts, two ports"),
        pytest.param("postgresql://h1,h2/d", (("h1", 5432), ("h2", 5432)), WRITES, id="the usual port"),
        pytest.param("postgresql://h1,h2/d?port=9", (("h1", 9), ("h2", 9)), WRITES, id="one port for all"),
        pytest.param(
            "postgresql://h1:5433,h2:5434/d?target_session_attrs=any",
            TWO,
            {"target_session_attrs": "any"},
            id="any host",
        ),
        pytest.param("postgresql://[::1]:1,[::2]:2/d", (("::1", 1), ("::2", 2)), WRITES, id="two of IPv6"),
        pytest.param("postgresql://h/d?sslmode=require", (("h", None),), {"sslmode": "require"}, id="TLS"),
        pytest.param(
            "postgresql://h/d?ssl=require", (("h", None),), {"sslmode": "require"}, id="TLS, as asyncpg has it"
        ),
        pytest.param("postgresql://h/d?gssencmode=disable&channel_binding=prefer", (("h", None),), {}, id="no effect"),
        pytest.param(
            "postgresql://h/d?options=-c%20geqo%3Doff&connect_timeout=3",
            (("h", None),),
            {"options": "-c geqo=off", "connect_timeout": "3"},
            id="of the session and the connection",
        ),
    ],
)
def test_every_form_is_understood_and_means_the_same_when_it_is_written_again(url, hosts, parameters):
    address = parse_postgres_address(url)
    assert (address.hosts, address.parameters, address.database) == (hosts, parameters, "d")
    assert parse_postgres_address(address.sqlalchemy_url_text()) == address


def test_names_and_passwords_are_decoded_and_encoded():
    address = parse_postgres_address("postgresql://lab%20admin:p%40ss%2F%3A@h/my%20data")
    assert (address.user, address.password, address.database) == ("lab admin", "p@ss/:", "my data")
    assert parse_postgres_address(address.sqlalchemy_url_text()) == address
    other = parse_postgres_address("postgresql:///?user=lab%20admin&password=p%40ss%2F%3A&dbname=my%20data&host=h")
    assert other == address


def test_an_address_for_people_has_no_secrets():
    address = parse_postgres_address("postgresql://someone:geheim@h1,[::1]:5433/d?sslpassword=geheim")
    assert address.url_without_secrets() == "postgresql://h1:5432,[::1]:5433/d"


def test_postgresqls_own_programs_get_the_same_address_by_their_environment():
    url = "postgresql://lab:p%40ss@h1,[::1]:5433/data?sslmode=require&connect_timeout=3&keepalives=1"
    assert parse_postgres_address(url).libpq_environment() == {
        "PGHOST": "h1,::1",
        "PGPORT": "5432,5433",
        "PGUSER": "lab",
        "PGPASSWORD": "p@ss",
        "PGDATABASE": "data",
        "PGSSLMODE": "require",
        "PGCONNECT_TIMEOUT": "3",
        "PGTARGETSESSIONATTRS": "read-write",
    }
    assert parse_postgres_address("postgresql://u@/d?host=/run/p").libpq_environment() == {
        "PGHOST": "/run/p",
        "PGUSER": "u",
        "PGDATABASE": "d",
    }


def test_what_cannot_be_followed_is_a_sentence_that_repeats_no_value(subtests):
    for url, said in (
        ("", "is not a database address"),
        ("someone:geheim", "is not a database address"),
        ("mysql://h/d", "names mysql, but Easel works only with PostgreSQL"),
        ("postgresql://h:geheim/d", "a port that is not a number"),
        ("postgresql://h:0/d", "a port that is not a number"),
        ("postgresql://h:65536/d", "a port that is not a number"),
        ("postgresql://h1:1:2/d", "a host that is neither a name nor an address"),
        ("postgresql://someone:ge@heim@h/d", "write IPv6 as [::1]:5432, and @ in a password as %40"),
        ("postgresql://h1,h2/d?port=1,2,3", "names 2 hosts and 3 ports"),
        ("postgresql://h/d?passwrd=geheim", "has the parameter 'passwrd', which Easel does not know. It knows "),
        ("postgresql://h/d?=geheim", "has the parameter '?', which Easel does not know"),
        ("postgresql://h/d?sslmode=geheim", "a value for 'sslmode' that Easel cannot use: it takes disable or allow"),
        ("postgresql://h/d?keepalives=geheim", "a value for 'keepalives' that Easel cannot use: it takes 0 or 1"),
        ("postgresql://h/d?keepalives_idle=-1", "it takes a whole number"),
        ("postgresql://h/d?connect_timeout=geheim", "it takes a whole number"),
        ("postgresql://h/d?command_timeout=0", "it takes a number of seconds above 0"),
        ("postgresql://h/d?channel_binding=require", "it takes disable or prefer"),
        ("postgresql://h/d?client_encoding=latin1", "it takes utf8"),
        ("postgresql://h/d?application_name=", "it takes a text"),
    ):
        with subtests.test(url=url, said=said):
            with pytest.raises(AddressProblem) as problem:
                parse_postgres_address(url)
            assert said in str(problem.value)
            assert "geheim" not in str(problem.value)
            assert "\n" not in str(problem.value)
