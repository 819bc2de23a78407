import numpy as np

from app.inference.ground.arrays import distinct_row_positions_with_codes


def test_rows_that_are_alike_stand_for_each_other():
    columns = [np.array([1.0, 2.0, 1.0, 1.0]), np.array([3.0, 3.0, 3.0, 4.0])]
    first, which = distinct_row_positions_with_codes(columns)
    assert sorted(first.tolist()) == [0, 1, 3]
    for column in columns:
        assert column[first][which].tolist() == column.tolist()


def test_rows_are_alike_only_to_the_last_bit():
    column = np.array([0.0, -0.0, np.nan, np.nan, 0.1 + 0.2, 0.3])
    first, which = distinct_row_positions_with_codes([column])
    assert len(first) == 5
    assert column[first][which].tobytes() == column.tobytes()


def test_of_no_rows_there_are_none():
    first, which = distinct_row_positions_with_codes([np.zeros(0), np.zeros(0)])
    assert (len(first), len(which)) == (0, 0)
