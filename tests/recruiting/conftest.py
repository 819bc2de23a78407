"""Prolific on loopback, for every test of studies."""

from tests.payments.conftest import no_payment_work_of_the_application, prolific, prolific_server

__all__ = ["no_payment_work_of_the_application", "prolific", "prolific_server"]
