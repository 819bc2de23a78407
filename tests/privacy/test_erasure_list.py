"""The list next to backups keeps what any of the databases knew last about a request."""

from datetime import timedelta

import pytest

from app.privacy.erasure_list import ListedErasure, with_erasures_of_older_list
from tests.annotation.hits.campaigns import NOW


def listed(state, receipt="E-1", hours=0):
    return ListedErasure(
        campaign="study",
        state=state,
        receipt=receipt,
        rule="remove",
        requested_by="the annotator",
        requested_at=NOW + timedelta(hours=hours),
        person_hashes=[],
    )


def test_requests_of_both_lists_follow_in_their_order():
    merged = with_erasures_of_older_list([listed("erased", "E-2", hours=2)], [listed("erased", "E-1", hours=1)])
    assert [erasure.receipt for erasure in merged] == ["E-1", "E-2"]


@pytest.mark.parametrize("ending", ["erased", "undone"])
def test_the_end_of_a_withdrawal_is_kept_whichever_list_has_it(ending):
    ended, still_open = listed(ending, hours=1), listed("open")
    assert with_erasures_of_older_list([still_open], [ended]) == [ended]
    assert with_erasures_of_older_list([ended], [still_open]) == [ended]


def test_of_two_ends_that_of_the_database_counts():
    assert with_erasures_of_older_list([listed("undone")], [listed("erased")]) == [listed("undone")]
