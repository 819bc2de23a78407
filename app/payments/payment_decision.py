"""Decisions that a person can make about an unclear payment."""

from typing import Literal

DecisionOnPayment = Literal["sent", "again", "cancel"]
