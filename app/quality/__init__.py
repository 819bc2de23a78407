"""Quality control of annotators and of their answers.

Gold and attention items (`checks`, with `expected_answers`) show who answers carelessly. Quality rules (`rules/`,
listed in `registry`) are pure functions of `behaviour.AnnotatorBehaviour`, one annotator's answers as arrays, which
`inputs` reads from the record. `rule_assessments` applies them to all annotators, for pages and for
`rule_monitor.CampaignMonitor`, which scans campaigns in the background; `run_rules` stores each finding once and
applies its action. `decisions` puts annotators on hold or excludes answers. `rule_reach` says what rules can find.

Open `rule.py` first: it says what a rule is. Then read `run_rules.py`.
"""
