"""What a request does with a list of people."""

from typing import Literal

ListAction = Literal["add", "remove", "replace"]
