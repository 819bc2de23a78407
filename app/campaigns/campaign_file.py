"""A whole campaign as one YAML file: its settings by their names, and its items if they come with it."""

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from app.campaigns import documents
from app.campaigns.columns import ROW_NUMBERS
from app.campaigns.documents import Document, Mistake, Place, dotted
from app.campaigns.form import in_words, together
from app.campaigns.groups import CRITERIA, DESIGN_SETTINGS
from app.campaigns.settings import CampaignSettings
from app.designs.criteria import Criterion
from app.designs.registry import DESIGNS
from app.errors import MOST_NAMED, Invalid, plural, shortened
from app.fields import is_private

MOST_ROWS_INSIDE = 10_000
FIRST = ("name", "question", "instructions", "design", "design_settings", "criteria")  # in a file that is written
EMPTY: tuple[Any, ...] = (None, "", [], {})
HEAD = "# A campaign of Easel; `easel campaign create FILE` makes a draft of it. See docs/campaign-file.md.\n"

Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


class About(BaseModel):
    """What a file says of itself, for people; a campaign keeps none of it."""

    model_config = ConfigDict(extra="forbid")

    title: Line = Field(description="What the file is for, in a few words.")
    description: Line = Field(description="The same in a sentence.")
    source: Line | None = Field(default=None, description="Where the way of asking comes from.")


class ItemsOfFile(BaseModel):
    """The items, in the file itself or in a table beside it."""

    model_config = ConfigDict(extra="forbid")

    id: Line | None = Field(
        default=None,
        description=f"The column of ids; `id` if it is left out, `{ROW_NUMBERS}` to number the rows.",
    )
    shown: Line | None = Field(
        default=None, description="The column that annotators see; may be left out where it is plain which."
    )
    template: Line | None = Field(
        default=None, description="Instead of a column: words around columns, such as `{premise} → {hypothesis}`."
    )
    priors: bool = Field(
        default=False, description="Whether items begin with the priors in `alpha` and `beta` (`mu` and `sigma2`, ...)."
    )
    ignore: list[Literal["check", "system", "source", "reference"]] = Field(
        default=[], description="Columns that are kept and have no meaning of their own."
    )
    file: Line | None = Field(
        default=None, description="Name of a CSV, TSV or JSON file in the folder of this file, or in one below it."
    )
    encoding: Line | None = Field(
        default=None, description="How that file is encoded if not in Unicode, such as `windows-1252`."
    )
    quotes: Literal["cells", "text"] | None = Field(
        default=None, description="Whether its quotation marks enclose cells or are part of the text."
    )
    rows: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MOST_ROWS_INSIDE)] | None = Field(
        default=None,
        description=f"Or the items themselves, {MOST_ROWS_INSIDE:,} at most: columns by name, of which `id` is one.",
    )

    @model_validator(mode="after")
    def in_one_place(self) -> Self:
        """Raises ValueError."""
        if (self.file is None) == (self.rows is None):
            raise ValueError("name either a file or rows")
        return self


class CampaignFile(CampaignSettings):
    """All that a file may say: the settings of a campaign, its items, and what it is."""

    about: About | None = Field(default=None, description="What the file says of itself; a campaign keeps none of it.")
    items: ItemsOfFile | None = Field(default=None, description="The items of the campaign. Without them, none.")

    @property
    def settings(self) -> CampaignSettings:
        """Those of the campaign alone."""
        return CampaignSettings.model_validate(self.model_dump(include=set(CampaignSettings.model_fields)))


@dataclass(frozen=True)
class FileRead:
    """A campaign file that has been read: what it says, and where it says it."""

    name: str
    content: CampaignFile
    document: Document


def read(content: bytes, name: str, given: Mapping[str, Any] | None = None) -> FileRead:
    """A campaign from a file called `name`, with the settings `given` in the place of the file's.

    Raises what `documents.read` raises, and `Invalid` (`campaign_file_invalid`; details: `mistakes`, all of them).
    """
    given = given or {}
    document = documents.read(content, data=["items"])
    try:
        said = CampaignFile.model_validate({**document.values, **given})
    except ValidationError as error:
        raise refusal(name, [*document.mistakes, *mistakes(error, document, given)], given) from None
    if document.mistakes:
        raise refusal(name, document.mistakes, given)
    return FileRead(name, said, document)


def refusal(name: str, found: Sequence[Mistake], given: Collection[str]) -> Invalid:
    """All mistakes in one message, in the order of their lines; of many the first ones."""
    told = sorted(found, key=lambda mistake: mistake.line)[:MOST_NAMED]
    head = f"{shortened(name)} has {plural(len(found), 'mistake')}; nothing was created."
    more = [f"And {len(found) - MOST_NAMED:,} more."] if len(found) > MOST_NAMED else []
    return Invalid(
        " ".join([head, *(f"{where(mistake, given)}: {mistake.message}" for mistake in told), *more]),
        code="campaign_file_invalid",
        mistakes=[mistake._asdict() for mistake in told],
    )


def where(mistake: Mistake, given: Collection[str]) -> str:
    """The line and the setting, or the option of the command by which it was given."""
    option = "--" + mistake.field.replace("_", "-")
    return option if mistake.field in given else f"Line {mistake.line}, {mistake.field}"


def mistakes(error: ValidationError, document: Document, given: Mapping[str, Any]) -> Iterator[Mistake]:
    """What the settings refuse, each at its line. Only those that can be told are put into words: there may be many."""
    design = str({**document.values, **given}.get("design", CampaignSettings.model_fields["design"].default))
    known = known_names(design)
    found = [*problems(error)]
    above = {place[:deep] for place, _, _ in found for deep in range(len(place))}
    # A list is short because one of its elements is wrong.
    apart = sorted((one for one in found if one[0] not in above), key=lambda one: document.line_of(one[0]))
    for number, (place, kind, message) in enumerate(apart):
        own = place[:1] == (DESIGN_SETTINGS,) and len(place) == 2 and design in DESIGNS
        unknown = kind == "extra_forbidden" or (own and dotted(place) not in known)
        words = unknown_name(place, known) if unknown and number < MOST_NAMED else in_words(kind, message)
        yield Mistake(document.line_of(place), dotted(place), words)


def problems(error: ValidationError) -> Iterator[tuple[Place, str, str]]:
    """(where, kind, message); those of a design's own settings each for itself."""
    for problem in error.errors(include_url=False, include_input=False):
        place: Place = problem["loc"] or together(problem)
        inner: Mapping[str, str] = problem.get("ctx", {}).get("problems", {})
        for name, message in inner.items():
            yield (*place, *(int(part) if part.isdecimal() else part for part in name.split(".") if part)), "", message
        if not inner:
            yield place, problem["type"], problem["msg"]


def known_names(design: str) -> list[str]:
    """Every name that a file of this design can have, with dots."""
    parts: dict[str, Iterable[str]] = {"about": About.model_fields, "items": ItemsOfFile.model_fields}
    parts |= {DESIGN_SETTINGS: DESIGNS[design].model_fields} if design in DESIGNS else {}
    parts[CRITERIA] = Criterion.__annotations__
    return [*CampaignFile.model_fields, *(f"{name}.{own}" for name, part in parts.items() for own in part)]


def unknown_name(place: Place, known: Sequence[str]) -> str:
    """With the nearest name that is known; those beside it first."""
    word, above = str(place[-1]), dotted(tuple(part for part in place[:-1] if isinstance(part, str)))
    exactly = [name for name in known if name.rpartition(".")[2] == word]
    beside = [name for name in known if name.rpartition(".")[0] == above]
    for names in (exactly, beside, known):
        last = {name.rpartition(".")[2]: name for name in reversed(names)}
        if near := difflib.get_close_matches(word, last, n=1):
            return f"There is no setting of this name. Is “{last[near[0]]}” meant?"
    return "There is no setting of this name."


def written(settings: CampaignSettings, items: Mapping[str, Any] | None = None) -> str:
    """A campaign as a file: all of its settings but those that are empty by default, and first what is asked."""
    fields = CampaignSettings.model_fields.items()
    values = settings.model_dump(mode="json", exclude={name for name, field in fields if is_private(field)})
    usual = {name: None if info.is_required() else info.get_default(call_default_factory=True) for name, info in fields}
    in_order = dict.fromkeys((*FIRST, *values))
    said = {name: values[name] for name in in_order if values[name] not in EMPTY or values[name] != usual[name]}
    return HEAD + documents.written(said | ({"items": items} if items else {}))
