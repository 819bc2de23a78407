"""Statistics of Easel: posteriors of items, estimators and measures of agreement. Pure: arrays in, arrays out.

A posterior is two floats, (alpha, beta) of a Beta or (mu, sigma2) of a Gaussian, or, for labels, counts of classes.
Scores lie in [0, 1]. Main types: `online.law.Law` (an update law), `ratings.moderated_means.ModeratedMeans`,
`observations.tally.Tally`, `ground.notes.Note`.

Open `online/law.py` first: it defines what an update law is. `online.laws` lists the laws by name. The other folders
hold the estimators that read all judgments at once: `ratings` (scores), `labels` (classes), `preferences` (pairs),
`systems` (machine translation) and `agreement`.
"""
