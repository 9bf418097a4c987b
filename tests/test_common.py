"""`embedlog.common`: values."""

from __future__ import annotations

import pytest

from embedlog.common import Value


class Point(Value):
    """A value with two fields."""

    x: int
    y: int = 0


def test_equal_values_have_one_hash_in_whatever_order_their_fields_are_given() -> None:
    assert Point(x=1, y=2) == Point(y=2, x=1) == Point(1, y=2)
    assert len({hash(Point(x=1, y=2)), hash(Point(y=2, x=1)), hash(Point(1, y=2))}) == 1


def test_a_default_counts_like_a_given_field() -> None:
    assert Point(1) == Point(x=1, y=0)
    assert repr(Point(y=2, x=1)) == "Point(x=1, y=2)"


@pytest.mark.parametrize(("values", "named"), [((), {}), ((1,), {"z": 2}), ((1, 2, 3), {})])
def test_wrong_fields_are_refused(values: tuple[int, ...], named: dict[str, int]) -> None:
    with pytest.raises(TypeError, match="Point"):
        Point(*values, **named)
