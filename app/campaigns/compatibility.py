"""Which designs, update laws and selection rules go together."""

from app.designs.design import Design
from app.inference.observations.judgment_kinds import can_law_read
from app.inference.online.law import Law
from app.selection.rule import Rule


def can_law_read_design(design: Design, law: Law) -> bool:
    """Return whether a law can read a design's answers."""
    return can_law_read(law.reads, design.value_kind, len(design.classes))


def can_law_serve_rule(rule: Rule, law: Law) -> bool:
    """Return whether a law keeps what a selection rule reads."""
    labels = law.family.counts_classes
    if rule.reads_labels or rule.needs_ordered_scores:
        return labels == rule.reads_labels and (not rule.needs_bounded_scores or law.family.support == (0.0, 1.0))
    return True
