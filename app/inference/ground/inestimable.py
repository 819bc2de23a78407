"""What the estimators raise when the judgments cannot carry an answer."""


class Inestimable(ValueError):
    """Nothing can be estimated from these judgments; the message says why, in a sentence for a researcher.

    code: a stable word for programs.
    """

    def __init__(self, sentence: str, *, code: str) -> None:
        super().__init__(sentence)
        self.code = code


class NotConverged(Inestimable):
    """A fit reached its limit of iterations before it settled; nothing of it should be used."""
