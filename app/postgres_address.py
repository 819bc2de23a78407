"""The address of a PostgreSQL database, in the forms that libpq, SQLAlchemy and asyncpg write.

All of these name the same two servers:

    postgresql://u@h1:5432,h2:5433/db?target_session_attrs=read-write
    postgresql://u@/db?host=h1:5432&host=h2:5433&target_session_attrs=read-write
    postgresql://u@/db?host=h1,h2&port=5432,5433&target_session_attrs=read-write
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv6Address
from urllib.parse import parse_qsl, quote, unquote

from sqlalchemy.engine import URL

DEFAULT_PORT = 5432
LAST_PORT = 65535
NOT_AN_ADDRESS = "is not a database address such as postgresql://user:password@host/name"
SPLIT_URL = re.compile(
    r"(?P<scheme>[\w+]+)://(?:(?P<user>[^:/@]*)(?::(?P<password>[^@]*))?@)?"
    r"(?P<hosts>[^/?]*)(?:/(?P<database>[^?]*))?(?:\?(?P<query>.*))?",
    re.DOTALL,
)
HOST_AND_PORT = re.compile(r"(?:\[(?P<bracketed>[^\]]+)\]|(?P<plain>[^:@\[\]\s]*))(?::(?P<port>[^:]*))?")

# A host (a name, an IP address, or the folder of a Unix socket) and its port; None where the driver chooses.
Host = tuple[str | None, int | None]


class AddressProblem(ValueError):
    """The text is no address of a PostgreSQL database; the message never repeats a value, which may be a password."""


def one_of(*values: str) -> Callable[[str], str | None]:
    """Return a check that a parameter has one of these values."""
    return lambda value: None if value in values else f"takes {' or '.join(values)}"


def whole_number(value: str) -> str | None:
    return None if re.fullmatch(r"[0-9]{1,9}", value) else "takes a whole number"


def seconds(value: str) -> str | None:
    positive = re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", value) and float(value) > 0
    return None if positive else "takes a number of seconds above 0"


def any_text(value: str) -> str | None:
    return None if value and "\0" not in value else "takes a text"


SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
TLS_VERSIONS = ("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3")
SESSIONS = ("any", "read-write", "read-only", "primary", "standby", "prefer-standby")

# Parameters that the driver takes with its own address.
DRIVER_PARAMETERS: Mapping[str, Callable[[str], str | None]] = {
    "sslmode": one_of(*SSL_MODES),
    "sslcert": any_text,
    "sslkey": any_text,
    "sslrootcert": any_text,
    "sslcrl": any_text,
    "sslpassword": any_text,
    "sslnegotiation": one_of("postgres", "direct"),
    "ssl_min_protocol_version": one_of(*TLS_VERSIONS),
    "ssl_max_protocol_version": one_of(*TLS_VERSIONS),
    "passfile": any_text,
    "krbsrvname": any_text,
    "gsslib": one_of("gssapi", "sspi"),
}

# Parameters that Easel itself follows when it connects.
OWN_PARAMETERS: Mapping[str, Callable[[str], str | None]] = {
    "target_session_attrs": one_of(*SESSIONS),
    "application_name": any_text,
    "options": any_text,
    "connect_timeout": whole_number,
    "command_timeout": seconds,
    "keepalives": one_of("0", "1"),
    "keepalives_idle": whole_number,
    "keepalives_interval": whole_number,
    "keepalives_count": whole_number,
    "tcp_user_timeout": whole_number,
}

# Parameters of libpq that change nothing here, as long as they have these values.
WITHOUT_EFFECT: Mapping[str, Callable[[str], str | None]] = {
    "channel_binding": one_of("disable", "prefer"),
    "client_encoding": one_of("utf8", "UTF8", "utf-8", "UTF-8", "auto"),
    "fallback_application_name": any_text,
    "gssencmode": one_of("disable", "prefer"),
    "load_balance_hosts": one_of("disable"),
    "sslcompression": one_of("0"),
    "sslsni": one_of("1"),
}

PLACE_PARAMETERS = ("host", "port", "user", "password", "dbname", "database")
ALIASES = {"ssl": "sslmode"}
CHECKS = {**DRIVER_PARAMETERS, **OWN_PARAMETERS, **WITHOUT_EFFECT}


@dataclass(frozen=True)
class PostgresAddress:
    """Where a database is, and how to connect to it.

    Args:
        hosts: The servers, at least one, in the order in which they are tried. If there are several, each has both.
        parameters: Of `DRIVER_PARAMETERS` and `OWN_PARAMETERS`, by libpq's names, with values that were checked.

    """

    hosts: tuple[Host, ...]
    user: str | None
    password: str | None
    database: str | None
    parameters: Mapping[str, str]

    def driver_parameters(self) -> dict[str, str]:
        """Return the parameters that the driver follows."""
        return {name: value for name, value in self.parameters.items() if name in DRIVER_PARAMETERS}

    def as_url(self) -> str:
        """Return the address, with its secrets, as SQLAlchemy writes it for asyncpg."""
        query = {"ssl" if name == "sslmode" else name: value for name, value in self.parameters.items()}
        host: str | None = None
        port: int | None = None
        ((first_host, first_port), *others) = self.hosts
        if others:
            query["host"] = ",".join(str(name) for name, _ in self.hosts)
            query["port"] = ",".join(str(number) for _, number in self.hosts)
        elif first_host and first_host.startswith("/"):
            query["host"] = first_host
            query |= {"port": str(first_port)} if first_port else {}
        else:
            host, port = first_host, first_port
        url = URL.create("postgresql+asyncpg", self.user, self.password, host, port, self.database, query)
        return url.render_as_string(hide_password=False)

    def in_words(self) -> str:
        """Return the address for people: where the database is and its name, and no secrets."""
        return f"postgresql://{','.join(map(host_in_words, self.hosts))}/{self.database or ''}"


def host_in_words(host: Host) -> str:
    """Return a host as libpq writes it, for people."""
    name, port = host
    shown = f"[{name}]" if name and ":" in name else quote(name or "", safe="")
    return f"{shown}:{port}" if port else shown


def parse_address(text: str) -> PostgresAddress:
    """Return the address that a text such as DATABASE_URL names. Raises AddressProblem."""
    parts = SPLIT_URL.fullmatch(text)
    if parts is None:
        raise AddressProblem(NOT_AN_ADDRESS)
    scheme = parts["scheme"].partition("+")[0]
    if scheme not in ("postgres", "postgresql"):
        raise AddressProblem(f"names {parts['scheme']}, and Easel works on PostgreSQL only (postgresql://...)")
    query = parse_qsl(parts["query"] or "", keep_blank_values=True)
    place = {name: [value for key, value in query if key == name] for name in PLACE_PARAMETERS}
    named = [part for names in place["host"] for part in names.split(",")]
    hosts = [host_in_query(part) for part in named] or [host_in_url(part) for part in parts["hosts"].split(",")]
    hosts = with_ports(hosts, [part for ports in place["port"] for part in ports.split(",")])
    database = (place["dbname"] + place["database"])[-1:] or [unquote(parts["database"] or "")]
    user = place["user"][-1:] or [unquote(parts["user"] or "")]
    password = (place["password"][-1:] or [None if parts["password"] is None else unquote(parts["password"])])[0]
    parameters = checked_parameters([(key, value) for key, value in query if key not in PLACE_PARAMETERS])
    # Easel writes: with several servers it wants the one that takes writes, unless the operator says otherwise.
    if len(hosts) > 1:
        hosts = [(name or "localhost", port or DEFAULT_PORT) for name, port in hosts]
        parameters = {"target_session_attrs": "read-write"} | parameters
    return PostgresAddress(tuple(hosts), user[0] or None, password, database[0] or None, parameters)


def host_in_url(text: str) -> Host:
    """Return the host that a part of a URL between `@` and `/` names, where `%2F` stands for a slash."""
    name, port = host_in_query(text)
    return unquote(name) if name else None, port


def host_in_query(text: str) -> Host:
    """Return the host that a part of the parameter `host` names, where an IPv6 address needs no brackets."""
    text = text.strip()
    if text.startswith("/") or is_ipv6(text):
        return text, None
    parts = HOST_AND_PORT.fullmatch(text)
    if parts is None:
        raise AddressProblem(
            "has a host that is neither a name nor an address; write IPv6 as [::1]:5432, and @ in a password as %40"
        )
    return parts["bracketed"] or parts["plain"] or None, port_of(parts["port"] or "")


def is_ipv6(text: str) -> bool:
    with suppress(ValueError):
        IPv6Address(text)
        return True
    return False


def with_ports(hosts: Sequence[Host], ports: Sequence[str]) -> list[Host]:
    """Return the hosts with the ports of the parameter `port`: one for each host, or one for all."""
    numbers = [port_of(text) for text in ports] or [None]
    if len(numbers) == 1:
        numbers *= len(hosts)
    if len(numbers) != len(hosts):
        raise AddressProblem(f"names {len(hosts)} hosts and {len(numbers)} ports; give one port, or one for each host")
    return [(name, number or port) for (name, port), number in zip(hosts, numbers, strict=True)]


def port_of(text: str) -> int | None:
    if not text:
        return None
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 1 <= int(text) <= LAST_PORT:
        raise AddressProblem(f"has a port that is not a number from 1 to {LAST_PORT}")
    return int(text)


def checked_parameters(given: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the parameters that have an effect, by libpq's names; of one that is given twice, the last."""
    parameters = {}
    for written, value in given:
        name = ALIASES.get(written, written)
        if name not in CHECKS:
            shown = written if re.fullmatch(r"\w{1,40}", written) else "?"
            known = ", ".join(sorted({*PLACE_PARAMETERS, *DRIVER_PARAMETERS, *OWN_PARAMETERS}))
            raise AddressProblem(f"has the parameter '{shown}', which Easel does not know. It knows {known}")
        problem = CHECKS[name](value)
        if problem is not None:
            raise AddressProblem(f"has a value for '{written}' that Easel cannot use: it {problem}")
        if name not in WITHOUT_EFFECT:
            parameters[name] = value
    return parameters
