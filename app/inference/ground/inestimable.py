"""Exceptions of the estimators where the judgments cannot support an answer."""

from functools import partial
from typing import Any


class Inestimable(ValueError):
    """These judgments do not allow an estimate; the message tells a researcher why, in a sentence.

    Attributes:
        code: A stable word for programs.

    """

    def __init__(self, sentence: str, *, code: str) -> None:
        super().__init__(sentence)
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep the code when pickled: by default exceptions are rebuilt from their message alone."""
        return partial(type(self), code=self.code), self.args


class NotConverged(Inestimable):
    """A fit reached its limit of iterations before it settled; its numbers must not be used."""
