"""Experiments from the papers that Easel builds on, with simulated annotators, published data or people.

Each paper has a module, named by its first author and year (`sakaguchi_2018.py`, `otani_2016.py`, ...), with a
`run_..._experiment` function that writes figures, tables and a report into a folder. Main types: `Experiment` and
`ArmResult` (runs and their results), `ScaleExperiment` (arms that ask about items on a scale) and `ArmRecord` (the
answers of people in an arm).

Start with `runs.py` and `sakaguchi_2018.py`; experiments with people start in `human_arms.py`.
"""
