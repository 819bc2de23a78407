"""Registry of the rules of selection by name. To add a rule, add a module with a `Rule`, and one line here."""

from functools import cached_property

from app.selection.balanced_rule import BALANCED_RULE
from app.selection.even_rule import EVEN_RULE
from app.selection.goal_rules import BEST_ITEMS_RULE, THRESHOLD_RULE
from app.selection.index import AlgorithmOne
from app.selection.label_rules import ENTROPY_RULE, INFORMATION_RULE
from app.selection.pairs_rule import PAIRS_RULE
from app.selection.rule import Rule, SelectionSettings
from app.selection.systems_rule import SYSTEMS_RULE

ALL_SELECTION_RULES = (
    AlgorithmOne(),
    EVEN_RULE,
    BALANCED_RULE,
    BEST_ITEMS_RULE,
    THRESHOLD_RULE,
    SYSTEMS_RULE,
    PAIRS_RULE,
    ENTROPY_RULE,
    INFORMATION_RULE,
)
SELECTION_RULES: dict[str, Rule] = {rule.name: rule for rule in ALL_SELECTION_RULES}


class SelectingCampaign:
    """A campaign with the settings that decide what is asked next.

    Attributes:
        rule_name: The name of its rule, a key of `SELECTION_RULES`.
        fewest_items: How many drawn items an answer needs at least.
        always_shown: The numbers of the items outside the pool, without a limit on judgments: every HIT shows them, or
            with a fixed set, each annotator is shown each of them once.
        fixed_set: How each annotator is shown them once: `first` or `mixed`; None or `none` if every HIT shows them.
        threshold: The line of the rule `threshold`, in points.

    """

    rule_name: str
    judgments_per_item: int
    items_per_hit: int
    fewest_items: int
    always_shown: list[int]
    fixed_set: str | None
    gamma: float
    hits_per_iteration: int | None
    leaders_as_companions: bool
    best_items: int
    threshold: float

    @property
    def rule(self) -> Rule:
        """Return the campaign's rule of selection."""
        return SELECTION_RULES[self.rule_name]

    @property
    def has_fixed_set(self) -> bool:
        """Return whether each annotator judges a fixed set of items once."""
        return self.fixed_set not in (None, "none")

    @property
    def items_in_every_hit(self) -> list[int]:
        """Return the numbers of the items that every HIT shows."""
        return [] if self.has_fixed_set else self.always_shown

    @cached_property
    def selection_settings(self) -> SelectionSettings:
        return SelectionSettings(
            judgments_per_item=self.judgments_per_item,
            items_per_hit=self.items_per_hit - len(self.items_in_every_hit),
            min_items=self.fewest_items,
            gamma=self.gamma,
            hits_per_iteration=self.hits_per_iteration,
            leaders_as_companions=self.leaders_as_companions,
            never_drawn=tuple(self.always_shown),
            best_count=self.best_items,
            threshold=self.threshold / 100,
        )
