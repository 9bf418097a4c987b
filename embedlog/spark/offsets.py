"""Offsets in the format of Spark's Kafka connector, and how a batch is divided among tasks.

    {"orders":{"0":17,"1":4}}        topic -> partition -> the next offset to read

In a data directory each topic has one member more, which comes first: its lowest partition with a
zero before the number, and a number made of the topic's id.

    {"orders":{"00":4128736120456,"0":17,"1":4}}

A topic that was made anew under the same name has another one. The connector parses both members
as partition 0, and the later one counts, so that it can go on with the checkpoint.

Spark compares offsets as text: two texts for the same offsets make a new batch. So topics are
sorted, and partitions are sorted as numbers. The arithmetic and its rounding equal the connector's:
with a checkpoint that moves between the two sources, a query sees the same batches.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil, floor
from types import MappingProxyType

from embedlog.common import TopicPartition
from embedlog.spark.errors import IllegalArgument

Positions = dict[TopicPartition, int]
ByTopic = dict[str, dict[int, int]]

OFFSET_MAX = 2**63 - 1
PARTITION_MAX = 2**31 - 1
LATEST = -1
EARLIEST = -2

_OFFSETS = 'Expected e.g. {{"topicA":{{"0":23,"1":-1}},"topicB":{{"0":-2}}}}, got {}'
_PARTITIONS = 'Expected e.g. {{"topicA":[0,1],"topicB":[0,1]}}, got {}'
_TIMESTAMPS = (
    'Expected e.g. {{"topicA": {{"0": 123456789, "1": 123456789}},\n'
    '"topicB": {{"0": 123456789, "1": 123456789}}}}, got {}'
)


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The offsets [start, end) of a partition."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """Count of offsets; there may be fewer records."""
        return self.end - self.start

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


def to_json(
    positions: Mapping[TopicPartition, int], ids: Mapping[str, bytes] = MappingProxyType({})
) -> dict[str, dict[str, int]]:
    """Return the dict whose JSON text is in a checkpoint, always in the same order.

    `ids` are the topics' ids, where they are known.
    """
    made: dict[str, dict[str, int]] = {}
    for topic, partition in sorted(positions):
        if topic not in made:
            made[topic] = {f"0{partition}": id_number(ids[topic])} if topic in ids else {}
        made[topic][str(partition)] = positions[TopicPartition(topic, partition)]
    return made


def id_number(topic_id: bytes) -> int:
    """Return the number of 62 bits that stands for a topic's id in offsets."""
    return int.from_bytes(topic_id[:8], "big") >> 2


def id_numbers(offsets: object) -> dict[str, int]:
    """Return the numbers of the topics' ids in a dict that `to_json` or the connector wrote."""
    if not isinstance(offsets, dict):
        return {}
    return {
        topic: value
        for topic, numbers in offsets.items()
        if isinstance(numbers, dict)
        for name, value in numbers.items()
        if is_id(name)
    }


def is_id(partition: str) -> bool:
    """Whether a member of a topic's offsets stands for the topic's id, not for a partition."""
    return len(partition) > 1 and partition.startswith("0")


def from_json(offsets: object) -> Positions:
    """Read the dict that `to_json` or the connector wrote, in any order.

    Raises:
        IllegalArgument: the dict has another form.
    """
    return {
        TopicPartition(topic, partition): offset
        for topic, numbers in _by_topic(offsets, _OFFSETS, json.dumps(offsets)).items()
        for partition, offset in numbers.items()
    }


def parse_offsets(text: str) -> ByTopic:
    """Parse `startingOffsets` or `endingOffsets`; -2 is the earliest offset, -1 the latest.

    Raises:
        IllegalArgument: the text is not JSON of that form, or an offset is below -2.
    """
    found = _by_topic(_loaded(text, _OFFSETS), _OFFSETS, text)
    for topic, numbers in found.items():
        for partition, offset in numbers.items():
            if offset < EARLIEST:
                raise IllegalArgument(
                    f"offset {offset} for {topic}-{partition}: expected 0 or more, "
                    "-1 for latest, or -2 for earliest"
                )
    return found


def parse_timestamps(text: str) -> ByTopic:
    """Parse `startingOffsetsByTimestamp` or `endingOffsetsByTimestamp`, in ms since 1970.

    Raises:
        IllegalArgument: the text is not JSON of that form, or a timestamp is negative.
    """
    found = _by_topic(_loaded(text, _TIMESTAMPS), _TIMESTAMPS, text)
    for topic, numbers in found.items():
        for partition, timestamp in numbers.items():
            check_timestamp(timestamp, f" for partition {topic}-{partition}")
    return found


def check_timestamp(timestamp: int, whose: str = "") -> None:
    """Refuse a negative timestamp with IllegalArgument."""
    if timestamp < 0:
        raise IllegalArgument(
            f"The target time{whose} is {timestamp}. The target time cannot be negative."
        )


def parse_partitions(text: str) -> dict[str, list[int]]:
    """Parse `assign`: topic -> partitions, sorted and without duplicates.

    Raises:
        IllegalArgument: the text is not JSON of that form.
    """
    found = _loaded(text, _PARTITIONS)
    if not isinstance(found, dict):
        raise IllegalArgument(_PARTITIONS.format(text))
    for numbers in found.values():
        if not isinstance(numbers, list) or not all(_is_partition(each) for each in numbers):
            raise IllegalArgument(_PARTITIONS.format(text))
    return {topic: sorted(set(numbers)) for topic, numbers in found.items()}


def limited(begin: Positions, ends: Positions, count_max: int) -> Positions:
    """Return where a batch of about `count_max` records ends, between `begin` and `ends`.

    Each partition gets a share in proportion to its backlog, rounded down, but at least one record.
    So the batch exceeds `count_max` by at most the number of partitions.
    """
    sizes = {key: end - begin[key] for key, end in ends.items() if end > begin.get(key, end)}
    total = float(sum(sizes.values()))
    limited_ends = dict(ends)
    for key, size in sizes.items():
        # Floats, as in the connector: exact integers would sometimes give one record more.
        share = count_max * (size / total)
        count = ceil(share) if share < 1 else floor(share)
        limited_ends[key] = min(ends[key], begin[key] + count)
    return limited_ends


def split_by_count(ranges: Iterable[OffsetRange], count_max: int | None) -> list[OffsetRange]:
    """Cut ranges into equal parts of at most `count_max` offsets; drop the empty ones."""
    filled = [each for each in ranges if each.size > 0]
    if count_max is None:
        return filled
    assert count_max > 0, count_max
    return [part for each in filled for part in _divided(each, -(-each.size // count_max))]


def split_by_partitions(ranges: Iterable[OffsetRange], count_min: int | None) -> list[OffsetRange]:
    """Cut ranges so that there are about `count_min`; drop the empty ones.

    Long ranges are cut in proportion to their size. Ranges too short for a second part stay whole
    and do not count in the proportion. Because of rounding there may be a few more or fewer ranges.
    """
    filled = [each for each in ranges if each.size > 0]
    if count_min is None or len(filled) >= count_min or not filled:
        return filled
    total = sum(each.size for each in filled)
    short = [each for each in filled if _part_count(each.size, total, count_min) == 1]
    total -= sum(each.size for each in short)
    count_left = max(count_min - len(short), 1)
    # By partition, not by range, as in the connector: all parts of a partition are treated alike.
    whole = {each.topic_partition for each in short}
    parts: list[OffsetRange] = []
    for each in filled:
        is_whole = each.topic_partition in whole
        parts += _divided(each, 1 if is_whole else _part_count(each.size, total, count_left))
    return [part for part in parts if part.size > 0]


def _part_count(size: int, total: int, count: int) -> int:
    # Java's rounding: halves go up.
    return max(floor(size / total * count + 0.5), 1)


def _divided(whole: OffsetRange, count: int) -> list[OffsetRange]:
    parts, start = [], whole.start
    for left in range(count, 0, -1):
        end = start + (whole.end - start) // left
        parts.append(OffsetRange(whole.topic, whole.partition, start, end))
        start = end
    return parts


def _loaded(text: str, expected: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise IllegalArgument(expected.format(text)) from error


def _by_topic(found: object, expected: str, text: str) -> ByTopic:
    if not isinstance(found, dict):
        raise IllegalArgument(expected.format(text))
    made: ByTopic = {}
    for topic, numbers in found.items():
        if not isinstance(numbers, dict):
            raise IllegalArgument(expected.format(text))
        made[topic] = {}
        for partition, value in numbers.items():
            is_number = isinstance(partition, str) and partition.isascii() and partition.isdigit()
            if not is_number or not _is_partition(int(partition)) or not _is_long(value):
                raise IllegalArgument(expected.format(text))
            if not is_id(partition):
                made[topic][int(partition)] = value
    return made


def _is_partition(value: object) -> bool:
    return _is_long(value) and isinstance(value, int) and 0 <= value <= PARTITION_MAX


def _is_long(value: object) -> bool:
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return is_integer and -OFFSET_MAX - 1 <= value <= OFFSET_MAX  # type: ignore[operator]
