"""Partitions by key agree with every other Kafka client; without a key one partition fills up."""

from __future__ import annotations

import pytest

from embedlog.client.partitioner import KeyHashes, StickyPartition, murmur2

VECTORS = [
    (b"", 0x106E08D9),
    (b"1", 0x892E6F8F),
    (b"21", 0xC5F2F8EC),
    (b"abc", 0x1C94221B),
    (bytes([0, 1, 2, 3]), 0x723792A0),
    (b"key-1", 0x0B8601B8),
    (b"foobar", 0xD0E47BBE),
    ("grüße".encode(), 0x73DA9E0C),
    (b"a-little-bit-long-string", 0xC53B1DA0),
    (b"a-little-bit-longer-string", 0xA768C9C3),
    (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", 0xFC7D49CD),
    (bytes(range(256)), 0x8BDE9476),
]


@pytest.mark.parametrize(("key", "hashed"), VECTORS)
def test_murmur2_equals_the_other_clients(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed


@pytest.mark.parametrize(
    ("key", "by_three", "by_hundred"),
    [(b"", 0, 81), (b"foobar", 0, 66), ("grüße".encode(), 2, 48), (bytes(range(256)), 1, 74)],
)
def test_the_sign_is_dropped_before_the_remainder(
    key: bytes, by_three: int, by_hundred: int
) -> None:
    hashes = KeyHashes()
    assert hashes(key) % 3 == by_three
    assert hashes(key) % 100 == by_hundred, "the second answer comes from memory"


def test_the_memory_of_hashes_is_bounded() -> None:
    hashes = KeyHashes()
    for number in range(70_000):
        hashes(b"%d" % number)
    assert len(hashes._known) <= 65_536
    assert hashes(b"foobar") == 0xD0E47BBE & 0x7FFFFFFF


def test_a_sticky_partition_switches_at_the_end_of_a_batch_or_after_two() -> None:
    sticky = StickyPartition(100, lambda count: 0)
    sticky.choose([0, 1])
    assert not sticky.produced(99, batch_is_full=True)
    assert sticky.produced(1, batch_is_full=True)
    sticky.choose([0, 1])
    assert not sticky.produced(199, batch_is_full=False)
    assert sticky.produced(1, batch_is_full=False)


def test_a_shorter_queue_is_chosen_more_often() -> None:
    # Weights (longest + 1 - size): 3 for partition 4, 1 for partition 7.
    drawn = []
    for number in range(4):
        sticky = StickyPartition(100, lambda count, number=number: number % count)
        drawn.append(sticky.choose([4, 7], [0, 2]))
    assert drawn == [4, 4, 4, 7]


def test_equal_queues_are_chosen_evenly() -> None:
    sticky = StickyPartition(100, lambda count: count - 1)
    assert sticky.choose([4, 7], [2, 2]) == 7
