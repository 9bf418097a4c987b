"""`embedlog.common`: values, repetitions and uuids."""

from __future__ import annotations

import pytest

from embedlog.common import Value, few_of_each, uuid_from_text, uuid_to_text


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


@pytest.mark.parametrize(
    ("values", "named"), [((), {}), ((1,), {"z": 2}), ((1,), {"x": 2}), ((1, 2, 3), {})]
)
def test_wrong_fields_are_refused(values: tuple[int, ...], named: dict[str, int]) -> None:
    with pytest.raises(TypeError, match="Point"):
        Point(*values, **named)


def test_values_of_different_types_differ() -> None:
    class Other(Value):
        x: int
        y: int = 0

    assert Point(1) != Other(1)
    assert Other(1) != Point(1)


def test_an_item_is_repeated_ten_times_at_most() -> None:
    assert few_of_each([1, 2] * 12) == [1, 2] * 10
    assert few_of_each(["a", "A", "b"] * 6, key=str.lower) == ["a", "A", "b"] * 5 + ["b"]


def test_the_text_of_a_uuid_may_be_part_of_a_path() -> None:
    uuid = b"\xfb\xff\xbf" * 5 + b"\x00"
    assert uuid_to_text(uuid) == "-_-_" * 5 + "AA"
    assert uuid_from_text("-_-_" * 5 + "AA") == uuid
