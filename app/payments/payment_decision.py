"""What a person can decide about an unclear payment."""

from typing import Literal

DecisionOnPayment = Literal["sent", "again", "cancel"]
