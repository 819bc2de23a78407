"""Tags of a campaign: words by which researchers find it in the list."""

from typing import Annotated

from pydantic import Field, StringConstraints, field_validator

from app.designs.field_flags import EDITABLE, InputModel, OneLine

MAX_TAGS, MAX_TAG_CHARACTERS = 10, 40

Tag = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TAG_CHARACTERS), OneLine]


class TagSettings(InputModel):
    """The tags of a campaign. Annotators do not see them."""

    tags: list[Tag] = Field(
        default=[], max_length=MAX_TAGS, title="Tags", json_schema_extra=EDITABLE,
        description=f"One per line, up to {MAX_TAGS}, to find the campaign in the list. Annotators do not see them.",
    )  # fmt: skip

    @field_validator("tags", mode="before")
    @classmethod
    def split_tag_lines(cls, text_or_tags: object) -> object:
        """Return the tags of a text that line ends and commas separate; return any other value unchanged."""
        return (
            [tag for tag in text_or_tags.replace(",", "\n").splitlines() if tag.strip()]
            if isinstance(text_or_tags, str)
            else text_or_tags
        )

    @field_validator("tags")
    @classmethod
    def drop_repeated_tags(cls, tags: list[str]) -> list[str]:
        """Return each tag once, whatever its case."""
        return [*{tag.casefold(): tag for tag in reversed(tags)}.values()][::-1]
