"""Changes that a request can make to a list of people."""

from typing import Literal

ListAction = Literal["add", "remove", "replace"]
