"""What a researcher decides about the way to the work."""

from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints


class VisitSettings(BaseModel):
    """A column of a campaign for each."""

    welcome: bool = Field(
        default=True, title="Welcome page",
        description="Who comes from a platform first sees what it is, what it pays and an example. Who comes by link "
        "always does.",
    )  # fmt: skip
    consent: Annotated[str, StringConstraints(strip_whitespace=True, max_length=20_000)] = Field(
        default="", title="Consent",
        description="Markdown. Nobody gets a HIT before they agree to it; who agreed to which version is kept. Changed "
        "later, it is asked again before the next HIT. Empty: nobody is asked.",
    )  # fmt: skip


OPEN = ("consent",)  # what a launch leaves open: no answer depends on it
