"""Pages of long lists, and the query of an address that says what a page shows."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, TypeVar
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

T = TypeVar("T")

PageNumber = Annotated[int, Field(ge=1, le=10_000_000)]
SearchWords = Annotated[str, StringConstraints(max_length=200, strip_whitespace=True)]


@dataclass(frozen=True)
class Page(Generic[T]):
    """A page of a list. A number beyond the last page means the last one.

    Attributes:
        number: Number of the page, from 1.
        size: Most rows of a page.
        total: Rows on all pages.

    """

    number: int
    size: int
    total: int
    rows: Sequence[T] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "number", min(self.number, self.count))

    @property
    def count(self) -> int:
        """Number of pages, at least 1."""
        return max(1, -(-self.total // self.size))

    @property
    def offset(self) -> int:
        """Number of rows on the pages before."""
        return (self.number - 1) * self.size

    @property
    def last_place(self) -> int:
        """Place of the last row in the whole list, from 1."""
        return min(self.offset + self.size, self.total)


def value_without_nul_or_raise(value: T) -> T:
    """Return a text or several, or another value. Raises ValueError if a text has a NUL character."""
    texts = value if isinstance(value, list | tuple) else [value]
    if any(isinstance(text, str) and "\0" in text for text in texts):
        raise ValueError("must not contain a NUL character")
    return value


class AddressQuery(BaseModel):
    """Fields of the query of a page's address. A field that has its default is left out of addresses."""

    model_config = ConfigDict(frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def require_no_nul(cls, value: object) -> object:
        """Refuse what PostgreSQL would refuse, too late for a download that has begun."""
        return value_without_nul_or_raise(value)

    def query_fields(self, **changes: Any) -> list[tuple[str, Any]]:
        """Return the fields that differ from their defaults, after some changes; those of several values repeatedly."""
        values = {name: changes.get(name, getattr(self, name)) for name in type(self).model_fields}
        differing = {name: value for name, value in values.items() if value != type(self).model_fields[name].default}
        return [
            (name, one)
            for name, value in differing.items()
            for one in (value if isinstance(value, tuple) else (value,))
        ]

    def query(self, **changes: Any) -> str:
        """Return the query string, after some changes."""
        return "?" + urlencode(self.query_fields(**changes))
