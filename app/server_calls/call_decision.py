"""Decisions that a person can make about calls to the platform's server."""

from typing import Literal

CallDecision = Literal["sent", "again", "cancel"]
RepeatedState = Literal["failed", "unknown"]
