"""Offsets as JSON, and the division of a batch: the parts cover exactly the whole."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedlog.common import TopicPartition
from embedlog.spark.errors import IllegalArgument
from embedlog.spark.offsets import (
    OffsetRange,
    from_json,
    id_number,
    id_numbers,
    limited,
    split_by_count,
    split_by_partitions,
    to_json,
)

NAMES = st.sampled_from(["a", "b", "orders", "t-1"])
KEYS = st.builds(TopicPartition, NAMES, st.integers(0, 12))
OFFSETS = st.integers(0, 2**53)
POSITIONS = st.dictionaries(KEYS, OFFSETS, max_size=12)
BACKLOGS = st.dictionaries(KEYS, st.tuples(OFFSETS, st.integers(0, 2**40)), max_size=12)
SMALL = st.dictionaries(KEYS, st.tuples(OFFSETS, st.integers(0, 500)), max_size=12)


def ranges_of(sizes: dict[TopicPartition, tuple[int, int]]) -> list[OffsetRange]:
    return [OffsetRange(*key, start, start + size) for key, (start, size) in sorted(sizes.items())]


def assert_covers(parts: list[OffsetRange], whole: list[OffsetRange]) -> None:
    """Check that `parts` cover the ranges that are not empty, without gap or overlap, in order."""
    assert all(part.size > 0 for part in parts)
    joined: list[OffsetRange] = []
    for part in parts:
        last = joined[-1] if joined else None
        if last and last.topic_partition == part.topic_partition and last.end == part.start:
            joined[-1] = OffsetRange(part.topic, part.partition, last.start, part.end)
        else:
            joined.append(part)
    assert joined == [each for each in whole if each.size > 0]


def test_topics_are_sorted_and_partitions_as_numbers() -> None:
    made = to_json({TopicPartition(t, p): p for t, p in [("b", 2), ("b", 10), ("b", 0), ("a", 1)]})
    assert json.dumps(made) == '{"a": {"1": 1}, "b": {"0": 0, "2": 2, "10": 10}}'


@given(POSITIONS)
def test_offsets_come_back_and_have_one_text(positions: dict[TopicPartition, int]) -> None:
    turned = dict(reversed(positions.items()))
    assert from_json(json.loads(json.dumps(to_json(positions)))) == positions
    assert json.dumps(to_json(turned)) == json.dumps(to_json(positions))


def test_what_the_connector_wrote_is_read() -> None:
    written = json.loads('{"t":{"1":100,"0":99}}')
    assert from_json(written) == {TopicPartition("t", 0): 99, TopicPartition("t", 1): 100}


@pytest.mark.parametrize("wrong", [None, 5, [], {"t": 5}, {"t": {"x": 5}}, {"t": {"0": "5"}}])
def test_other_json_is_no_offsets(wrong: object) -> None:
    with pytest.raises(IllegalArgument, match="Expected e.g. "):
        from_json(wrong)


def limits(begin: dict[str, int], ends: dict[str, int], count_max: int) -> dict[str, int]:
    def keys(of: dict[str, int]) -> dict[TopicPartition, int]:
        return {TopicPartition(name, 0): at for name, at in of.items()}

    return {key.topic: at for key, at in limited(keys(begin), keys(ends), count_max).items()}


def test_a_batch_is_shared_out_by_backlog() -> None:
    assert limits({"a": 0, "b": 10}, {"a": 90, "b": 20}, 10) == {"a": 9, "b": 11}


def test_a_share_is_rounded_down_but_one_record_at_least() -> None:
    assert limits({"a": 0, "b": 0, "c": 0}, {"a": 1000, "b": 1, "c": 550}, 10) == {
        "a": 6,
        "b": 1,
        "c": 3,
    }


def test_a_batch_goes_no_further_than_the_log() -> None:
    assert limits({"a": 5, "b": 7}, {"a": 8, "b": 7}, 100) == {"a": 8, "b": 7}


@given(BACKLOGS, st.integers(1, 10**6))
def test_a_limit_is_kept_and_nobody_starves(
    backlogs: dict[TopicPartition, tuple[int, int]], count_max: int
) -> None:
    begin = {key: start for key, (start, _) in backlogs.items()}
    ends = {key: start + size for key, (start, size) in backlogs.items()}
    found = limited(begin, ends, count_max)
    assert found.keys() == ends.keys()
    assert all(begin[key] <= found[key] <= ends[key] for key in ends)
    assert all(found[key] > begin[key] for key in ends if ends[key] > begin[key])
    count = sum(found[key] - begin[key] for key in ends)
    assert count <= count_max + len(ends)


@given(BACKLOGS, st.integers(1, 10**6))
def test_batches_of_a_limit_come_to_the_end(
    backlogs: dict[TopicPartition, tuple[int, int]], count_max: int
) -> None:
    ends = {key: start + size % 50 for key, (start, size) in backlogs.items()}
    begin = {key: start for key, (start, _) in backlogs.items()}
    for _ in range(50 * len(ends) + 1):
        begin = limited(begin, ends, count_max)
    assert begin == ends


def test_long_ranges_are_cut_and_short_ones_are_left_out_of_the_proportion() -> None:
    whole = [OffsetRange("t", 0, 0, 1), OffsetRange("t", 1, 0, 1), OffsetRange("t", 2, 0, 100)]
    assert split_by_partitions(whole, 6) == [
        OffsetRange("t", 0, 0, 1),
        OffsetRange("t", 1, 0, 1),
        OffsetRange("t", 2, 0, 25),
        OffsetRange("t", 2, 25, 50),
        OffsetRange("t", 2, 50, 75),
        OffsetRange("t", 2, 75, 100),
    ]


def test_a_half_is_rounded_up_as_java_does() -> None:
    # 5 of 10 into 5 parts is 2.5 each: three parts, where Python's round() makes two.
    whole = [OffsetRange("t", 0, 0, 5), OffsetRange("t", 1, 0, 5)]
    assert len(split_by_partitions(whole, 5)) == 6


def test_the_last_part_takes_what_does_not_divide() -> None:
    parts = split_by_partitions([OffsetRange("t", 0, 100, 111)], 3)
    assert [(part.start, part.end) for part in parts] == [(100, 103), (103, 107), (107, 111)]


def test_as_many_ranges_as_asked_for_are_left_alone() -> None:
    whole = [OffsetRange("t", 0, 0, 1000), OffsetRange("t", 1, 0, 1), OffsetRange("t", 2, 5, 5)]
    assert split_by_partitions(whole, 2) == whole[:2]
    assert split_by_partitions(whole, None) == whole[:2]


@given(SMALL, st.integers(1, 64))
def test_parts_for_a_number_of_tasks_cover_exactly(
    sizes: dict[TopicPartition, tuple[int, int]], count_min: int
) -> None:
    whole = ranges_of(sizes)
    parts = split_by_partitions(whole, count_min)
    assert_covers(parts, whole)
    assert len(parts) <= count_min + len(whole)


@pytest.mark.slow
@given(SMALL, st.integers(1, 100))
def test_parts_of_a_number_of_records_cover_exactly_and_are_no_longer(
    sizes: dict[TopicPartition, tuple[int, int]], count_max: int
) -> None:
    whole = ranges_of(sizes)
    parts = split_by_count(whole, count_max)
    assert_covers(parts, whole)
    assert all(part.size <= count_max for part in parts)
    assert len(parts) == sum(-(-each.size // count_max) for each in whole)


@given(SMALL, st.integers(1, 100), st.integers(1, 64))
def test_both_limits_together_cover_exactly(
    sizes: dict[TopicPartition, tuple[int, int]], count_max: int, count_min: int
) -> None:
    whole = ranges_of(sizes)
    parts = split_by_partitions(split_by_count(whole, count_max), count_min)
    assert_covers(parts, whole)
    assert all(part.size <= count_max for part in parts)


def test_without_a_limit_only_empty_ranges_go() -> None:
    whole = [OffsetRange("t", 0, 3, 3), OffsetRange("t", 1, 0, 10**12)]
    assert split_by_count(whole, None) == whole[1:]


def test_ids_of_topics_are_beside_the_offsets_and_are_no_partition() -> None:
    positions = {TopicPartition("a", 3): 7, TopicPartition("a", 12): 8, TopicPartition("b", 0): 1}
    made = json.loads(json.dumps(to_json(positions, {"a": b"\xff" * 16})))
    assert list(made["a"]) == ["03", "3", "12"]
    assert made["b"] == {"0": 1}
    assert from_json(made) == positions
    assert id_numbers(made) == {"a": id_number(b"\xff" * 16)}
    assert id_number(b"\xff" * 16) < 2**63 - 1
    assert id_number(b"\1" * 16) != id_number(b"\2" * 16)
    assert id_numbers(to_json(positions)) == {}
    # A parser of numbers, as the connector's, takes the last member of each partition.
    assert {int(n): offset for n, offset in made["a"].items()} == {3: 7, 12: 8}


def test_a_topics_id_is_no_offset_wherever_it_stands() -> None:
    """A checkpoint may have been written again with its members in another order."""
    for offsets in ({"t": {"00": 9, "0": 5}}, {"t": {"0": 5, "00": 9}}):
        assert from_json(offsets) == {TopicPartition("t", 0): 5}
        assert id_numbers(offsets) == {"t": 9}
