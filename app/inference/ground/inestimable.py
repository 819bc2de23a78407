"""What the estimators raise when the judgments cannot carry an answer."""

from functools import partial
from typing import Any


class Inestimable(ValueError):
    """Nothing can be estimated from these judgments; the message says why, in a sentence for a researcher.

    code: a stable word for programs.
    """

    def __init__(self, sentence: str, *, code: str) -> None:
        super().__init__(sentence)
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        """As exceptions are, it would be made anew without its code, and could not come from another process."""
        return partial(type(self), code=self.code), self.args


class NotConverged(Inestimable):
    """A fit reached its limit of iterations before it settled; nothing of it should be used."""
