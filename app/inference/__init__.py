"""Posteriors of items and how judgments change them: pure mathematics, arrays in, arrays out.

A posterior is two floats: (alpha, beta) of a Beta, or (mu, sigma2) of a Gaussian. Scores lie in [0, 1].
`online.laws.ONLINE` names the update laws, `online.laws.replay` rebuilds posteriors.
"""
