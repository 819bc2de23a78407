"""Registry of the rules for annotators, by name."""

from app.quality.rule import QualityRule
from app.quality.rules.agreement import AgreementWithOthers
from app.quality.rules.at_random import AtRandom
from app.quality.rules.contradictions import Contradictions
from app.quality.rules.ends_or_middle import ScaleEndsRule, ScaleMiddleRule
from app.quality.rules.failed_checks import FailedAttentionRule, FailedGoldRule
from app.quality.rules.pooled_signs import PooledSigns
from app.quality.rules.straight_lining import StraightLining
from app.quality.rules.too_fast import TooFast
from app.quality.rules.unplayed import UnplayedRule

QUALITY_RULES: dict[str, type[QualityRule]] = {
    rule.name: rule
    for rule in (
        *(FailedGoldRule, FailedAttentionRule, TooFast, StraightLining, ScaleEndsRule, ScaleMiddleRule),
        *(AgreementWithOthers, Contradictions, AtRandom, PooledSigns, UnplayedRule),
    )
}
