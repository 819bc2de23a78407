"""Onboarding: the steps that an annotator passes before the first HIT, and the stored results of each annotator.

Open `step.py` first: a `VisitStep` says when it is required, when it is passed, and how it parses its form. `steps.py`
lists the steps in order (welcome, consent, questions, training, qualification), each in a module of its own.
`visit_progress.py` loads an annotator's `VisitHistory` and stores a `StepResult`. The passphrase, the Start button
(`start_form.py`) and personal links decide who becomes an annotator in the first place.
"""
