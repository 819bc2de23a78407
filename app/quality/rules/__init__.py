"""Rules that find careless annotators, one module each.

A rule is a subclass of `QualityRule` in `app/quality/rule.py` whose fields are its thresholds. It reads one annotator's
`AnnotatorBehaviour` and returns a `RuleAssessment`. To add a rule, add a module here and an entry in
`app/quality/registry.py`.

Open `failed_checks.py` first: it is the simplest rule. `agreement.py` compares annotators with each other.
"""
