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

DEFAULT_PORT = 5432
MAX_PORT = 65535
NOT_AN_ADDRESS_MESSAGE = "is not a database address such as postgresql://user:password@host/name"
SPLIT_URL = re.compile(
    r"(?P<scheme>[\w+]+)://(?:(?P<user>[^:/@]*)(?::(?P<password>[^@]*))?@)?"
    r"(?P<hosts>[^/?]*)(?:/(?P<database>[^?]*))?(?:\?(?P<query>.*))?",
    re.DOTALL,
)
HOST_AND_PORT = re.compile(r"(?:\[(?P<bracketed>[^\]]+)\]|(?P<plain>[^:@\[\]\s]*))(?::(?P<port>[^:]*))?")

# A host (a name, an IP address, or the folder of a Unix socket) and its port; None where the driver chooses.
HostAndPort = tuple[str | None, int | None]


class AddressProblem(ValueError):
    """The text is no address of a PostgreSQL database; the message never repeats a value, which may be a password."""


def make_complaint_function_for_allowed_values(*values: str) -> Callable[[str], str | None]:
    """Return a check that a parameter has one of these values."""
    return lambda value: None if value in values else f"takes {' or '.join(values)}"


def complaint_about_whole_number_or_none(value: str) -> str | None:
    return None if re.fullmatch(r"[0-9]{1,9}", value) else "takes a whole number"


def complaint_about_positive_seconds_or_none(value: str) -> str | None:
    is_positive = re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", value) and float(value) > 0
    return None if is_positive else "takes a number of seconds above 0"


def complaint_about_empty_text_or_none(value: str) -> str | None:
    return None if value and "\0" not in value else "takes a text"


SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
TLS_VERSIONS = ("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3")
TARGET_SESSION_ATTRIBUTES = ("any", "read-write", "read-only", "primary", "standby", "prefer-standby")

# Parameters that the driver takes with its own address.
DRIVER_PARAMETERS: Mapping[str, Callable[[str], str | None]] = {
    "sslmode": make_complaint_function_for_allowed_values(*SSL_MODES),
    "sslcert": complaint_about_empty_text_or_none,
    "sslkey": complaint_about_empty_text_or_none,
    "sslrootcert": complaint_about_empty_text_or_none,
    "sslcrl": complaint_about_empty_text_or_none,
    "sslpassword": complaint_about_empty_text_or_none,
    "sslnegotiation": make_complaint_function_for_allowed_values("postgres", "direct"),
    "ssl_min_protocol_version": make_complaint_function_for_allowed_values(*TLS_VERSIONS),
    "ssl_max_protocol_version": make_complaint_function_for_allowed_values(*TLS_VERSIONS),
    "passfile": complaint_about_empty_text_or_none,
    "krbsrvname": complaint_about_empty_text_or_none,
    "gsslib": make_complaint_function_for_allowed_values("gssapi", "sspi"),
}

# Parameters that Easel itself follows when it connects.
EASEL_PARAMETERS: Mapping[str, Callable[[str], str | None]] = {
    "target_session_attrs": make_complaint_function_for_allowed_values(*TARGET_SESSION_ATTRIBUTES),
    "application_name": complaint_about_empty_text_or_none,
    "options": complaint_about_empty_text_or_none,
    "connect_timeout": complaint_about_whole_number_or_none,
    "command_timeout": complaint_about_positive_seconds_or_none,
    "cluster": make_complaint_function_for_allowed_values("none", "citus"),
    "pool_mode": make_complaint_function_for_allowed_values("session", "transaction"),
    "keepalives": make_complaint_function_for_allowed_values("0", "1"),
    "keepalives_idle": complaint_about_whole_number_or_none,
    "keepalives_interval": complaint_about_whole_number_or_none,
    "keepalives_count": complaint_about_whole_number_or_none,
    "tcp_user_timeout": complaint_about_whole_number_or_none,
}

# Environment variables of PostgreSQL's programs, by the parameter with the same effect; the others have none.
LIBPQ_VARIABLES: Mapping[str, str] = {
    "sslmode": "PGSSLMODE",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcrl": "PGSSLCRL",
    "sslnegotiation": "PGSSLNEGOTIATION",
    "ssl_min_protocol_version": "PGSSLMINPROTOCOLVERSION",
    "ssl_max_protocol_version": "PGSSLMAXPROTOCOLVERSION",
    "passfile": "PGPASSFILE",
    "krbsrvname": "PGKRBSRVNAME",
    "gsslib": "PGGSSLIB",
    "target_session_attrs": "PGTARGETSESSIONATTRS",
    "options": "PGOPTIONS",
    "connect_timeout": "PGCONNECT_TIMEOUT",
}

# Parameters of libpq that change nothing here, as long as they have these values.
IGNORED_PARAMETERS: Mapping[str, Callable[[str], str | None]] = {
    "channel_binding": make_complaint_function_for_allowed_values("disable", "prefer"),
    "client_encoding": make_complaint_function_for_allowed_values("utf8", "UTF8", "utf-8", "UTF-8", "auto"),
    "fallback_application_name": complaint_about_empty_text_or_none,
    "gssencmode": make_complaint_function_for_allowed_values("disable", "prefer"),
    "load_balance_hosts": make_complaint_function_for_allowed_values("disable"),
    "sslcompression": make_complaint_function_for_allowed_values("0"),
    "sslsni": make_complaint_function_for_allowed_values("1"),
}

LOCATION_PARAMETERS = ("host", "port", "user", "password", "dbname", "database")
PARAMETER_ALIASES = {"ssl": "sslmode"}
PARAMETER_CHECKS = {**DRIVER_PARAMETERS, **EASEL_PARAMETERS, **IGNORED_PARAMETERS}


@dataclass(frozen=True)
class PostgresAddress:
    """Where a database is, and how to connect to it.

    Args:
        hosts: The servers, at least one, in the order in which they are tried. If several, each has a name and a port.
        user: Name of the database user; None for the driver's default.
        password: The user's password, if any.
        database: Name of the database; None for the driver's default.
        parameters: Checked values of `DRIVER_PARAMETERS` and `EASEL_PARAMETERS`, by libpq's names.

    """

    hosts: tuple[HostAndPort, ...]
    user: str | None
    password: str | None
    database: str | None
    parameters: Mapping[str, str]

    @property
    def lends_sessions_for_transactions(self) -> bool:
        """Return whether a pooler lends a session of PostgreSQL for one transaction at a time."""
        return self.parameters.get("pool_mode") == "transaction"

    @property
    def leads_to_citus(self) -> bool:
        """Return whether the database is the coordinator of a Citus cluster whose tables are distributed."""
        return self.parameters.get("cluster") == "citus"

    def parameters_for_driver(self) -> dict[str, str]:
        return {name: value for name, value in self.parameters.items() if name in DRIVER_PARAMETERS}

    def sqlalchemy_url_text(self) -> str:
        """Return the address, with its secrets, as SQLAlchemy writes it for asyncpg."""
        from sqlalchemy.engine import URL  # slow to import, and the help of a command needs no address

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

    def libpq_environment(self) -> dict[str, str]:
        """Return the environment variables by which PostgreSQL's own programs connect to the same database."""
        ports = [port for _, port in self.hosts]
        location = {
            "PGHOST": ",".join(host or "" for host, _ in self.hosts),
            "PGPORT": "" if ports == [None] else ",".join(str(port or DEFAULT_PORT) for port in ports),
            "PGUSER": self.user or "",
            "PGPASSWORD": self.password or "",
            "PGDATABASE": self.database or "",
        }
        parameters = {
            LIBPQ_VARIABLES[name]: value for name, value in self.parameters.items() if name in LIBPQ_VARIABLES
        }
        return {name: value for name, value in (location | parameters).items() if value}

    def url_without_secrets(self) -> str:
        """Return the address for people: where the database is and its name, and no secrets."""
        return f"postgresql://{','.join(map(format_host_and_port, self.hosts))}/{self.database or ''}"


def format_host_and_port(host: HostAndPort) -> str:
    """Return a host as libpq writes it, for people."""
    name, port = host
    shown = f"[{name}]" if name and ":" in name else quote(name or "", safe="")
    return f"{shown}:{port}" if port else shown


def parse_postgres_address(text: str) -> PostgresAddress:
    """Return the address that a text such as DATABASE_URL names. Raises AddressProblem."""
    parts = SPLIT_URL.fullmatch(text)
    if parts is None:
        raise AddressProblem(NOT_AN_ADDRESS_MESSAGE)
    scheme = parts["scheme"].partition("+")[0]
    if scheme not in ("postgres", "postgresql"):
        raise AddressProblem(f"names {parts['scheme']}, but Easel works only with PostgreSQL (postgresql://...)")
    if "@" in (parts["database"] or ""):
        raise AddressProblem(
            "has more than one @, so where the host begins is unclear. Write @ as %40, / as %2F and : as %3A in a user "
            "name or password"
        )
    query = parse_qsl(parts["query"] or "", keep_blank_values=True)
    location = {name: [value for key, value in query if key == name] for name in LOCATION_PARAMETERS}
    host_texts = [part for names in location["host"] for part in names.split(",")]
    hosts = [parse_query_host(part) for part in host_texts] or [
        unquote_url_host_or_none_and_port(part) for part in parts["hosts"].split(",")
    ]
    hosts = combine_hosts_and_ports(hosts, [part for ports in location["port"] for part in ports.split(",")])
    database = (location["dbname"] + location["database"])[-1:] or [unquote(parts["database"] or "")]
    user = location["user"][-1:] or [unquote(parts["user"] or "")]
    password = (location["password"][-1:] or [None if parts["password"] is None else unquote(parts["password"])])[0]
    parameters = effective_parameter_by_libpq_name(
        [(key, value) for key, value in query if key not in LOCATION_PARAMETERS]
    )
    # Easel writes, so of several servers it uses the one that takes writes, unless the operator sets otherwise.
    if len(hosts) > 1:
        hosts = [(name or "localhost", port or DEFAULT_PORT) for name, port in hosts]
        parameters = {"target_session_attrs": "read-write"} | parameters
    return PostgresAddress(tuple(hosts), user[0] or None, password, database[0] or None, parameters)


def unquote_url_host_or_none_and_port(text: str) -> HostAndPort:
    """Return the host that a part of a URL between `@` and `/` names, where `%2F` stands for a slash."""
    name, port = parse_query_host(text)
    return unquote(name) if name else None, port


def parse_query_host(text: str) -> HostAndPort:
    """Return the host that a part of the parameter `host` names, where an IPv6 address needs no brackets."""
    text = text.strip()
    if text.startswith("/") or is_ipv6_address(text):
        return text, None
    parts = HOST_AND_PORT.fullmatch(text)
    if parts is None:
        raise AddressProblem(
            "has a host that is neither a name nor an address; write IPv6 as [::1]:5432, and @ in a password as %40"
        )
    return parts["bracketed"] or parts["plain"] or None, parse_port_or_none_if_empty(parts["port"] or "")


def is_ipv6_address(text: str) -> bool:
    with suppress(ValueError):
        IPv6Address(text)
        return True
    return False


def combine_hosts_and_ports(hosts: Sequence[HostAndPort], ports: Sequence[str]) -> list[HostAndPort]:
    """Return the hosts with the ports of the parameter `port`: one for each host, or one for all."""
    numbers = [parse_port_or_none_if_empty(text) for text in ports] or [None]
    if len(numbers) == 1:
        numbers *= len(hosts)
    if len(numbers) != len(hosts):
        raise AddressProblem(f"names {len(hosts)} hosts and {len(numbers)} ports; give one port, or one for each host")
    return [(name, number or port) for (name, port), number in zip(hosts, numbers, strict=True)]


def parse_port_or_none_if_empty(text: str) -> int | None:
    if not text:
        return None
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 1 <= int(text) <= MAX_PORT:
        raise AddressProblem(f"has a port that is not a number from 1 to {MAX_PORT}")
    return int(text)


def effective_parameter_by_libpq_name(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the parameters that have an effect, by libpq's names; of one that is given twice, the last."""
    parameters = {}
    for written, value in pairs:
        name = PARAMETER_ALIASES.get(written, written)
        if name not in PARAMETER_CHECKS:
            shown = written if re.fullmatch(r"\w{1,40}", written) else "?"
            known = ", ".join(sorted({*LOCATION_PARAMETERS, *DRIVER_PARAMETERS, *EASEL_PARAMETERS}))
            raise AddressProblem(f"has the parameter '{shown}', which Easel does not know. It knows {known}")
        problem = PARAMETER_CHECKS[name](value)
        if problem is not None:
            raise AddressProblem(f"has a value for '{written}' that Easel cannot use: it {problem}")
        if name not in IGNORED_PARAMETERS:
            parameters[name] = value
    return parameters
