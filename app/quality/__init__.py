"""Checks on answers: what is expected of them (`expected`), and rules on annotators (`registry`), which see their
answers as arrays (`conduct`). Looks in the background (`looks`) gather these and store what was found.
"""
