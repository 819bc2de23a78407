"""Checks on answers: what is expected of them (`expected`); gold items, pace and rules are yet to come."""
