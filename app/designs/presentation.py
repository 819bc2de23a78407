"""Settings of how items are presented: how recordings are played, and the languages of items and sources."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from app.designs.field_flags import EDITABLE, InputModel
from app.designs.playback import MustPlay, SoundSwitching

# A language, and perhaps a script, a region and variants, as BCP 47 writes them; or a private tag.
LANGUAGE_TAG = re.compile(
    r"[a-z]{2,3}(-[a-z]{3}){0,3}(-[a-z]{4})?(-([a-z]{2}|[0-9]{3}))?(-([a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*"
    r"(-[a-wy-z](-[a-z0-9]{2,8})+)*(-x(-[a-z0-9]{1,8})+)?|x(-[a-z0-9]{1,8})+",
    re.IGNORECASE | re.ASCII,
)


def language_tag_or_empty_or_raise(tag: str) -> str:
    """Return the tag, or an empty text. Raises ValueError for what is no language tag."""
    if tag and not LANGUAGE_TAG.fullmatch(tag):
        raise ValueError("must be a language tag such as de, pt-BR or zh-Hant")
    return tag


LanguageTag = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=35), AfterValidator(language_tag_or_empty_or_raise)
]


class PresentationSettings(InputModel):
    """Settings of a campaign for how its items are presented."""

    items_language: LanguageTag = Field(
        default="", title="Language of the items", json_schema_extra=EDITABLE,
        description="For screen readers and fonts, as a tag such as de or pt-BR. Empty: the language of the page.",
    )  # fmt: skip
    source_language: LanguageTag = Field(
        default="", title="Language of the sources", json_schema_extra=EDITABLE,
        description="As a tag, if sources are in another language. Empty: the language of the items.",
    )  # fmt: skip
    must_play: MustPlay = Field(
        default="none", title="Must be played", json_schema_extra=EDITABLE,
        description="Recordings and videos must be played before people submit. Not enforced without JavaScript.",
    )  # fmt: skip
    max_plays: Annotated[int, Field(ge=1, le=100)] | None = Field(
        default=None, title="Plays, at most", json_schema_extra=EDITABLE,
        description="How often one person may play each recording or video. Empty: any number. Not enforced without "
        "JavaScript.",
    )  # fmt: skip
    loop: bool = Field(
        default=False, title="Play in a loop", json_schema_extra=EDITABLE,
        description="Recordings and videos start again at their end, until people stop them.",
    )  # fmt: skip
    switch_sounds: SoundSwitching = Field(
        default="none", title="Switch between recordings", json_schema_extra=EDITABLE,
        description="People switch between the recordings of a HIT without a gap. Needs JavaScript.",
    )  # fmt: skip
