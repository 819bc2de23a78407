"""Which designs, update laws and rules of selection go together."""

from app.designs.design import Design
from app.inference.observations.coarsening import readable
from app.inference.online.law import Law
from app.selection.rule import Rule


def can_follow(design: Design, law: Law) -> bool:
    """Whether a law can read a design's answers."""
    return readable(law.reads, design.yields, len(design.classes))


def can_ask(rule: Rule, law: Law) -> bool:
    """Whether a law keeps what a rule of selection reads."""
    labels = law.family.counts_classes
    if rule.reads_labels or rule.places:
        return labels == rule.reads_labels and (not rule.on_scale or law.family.support == (0.0, 1.0))
    return True
