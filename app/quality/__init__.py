"""Checks on answers: what is expected of them (`expected`), and rules on annotators (`registry`), which see their
answers as arrays (`conduct`).
"""
