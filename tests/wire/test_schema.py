"""The schema language: the features of declared classes, and the cost of declaring."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from wire.api_keys import ApiKey
from wire.schema import (
    INTERPRETED_INSTANCES,
    NO_TAGS,
    array,
    declaration,
    int32,
    message,
    shared_default,
    string,
    struct,
    struct_,
    version_range,
)
from wire.schemas.fetch import EpochEndOffset, FetchRequest, PartitionData
from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData

ROOT = Path(__file__).parents[2]


@struct
class Point:
    x: int = int32()
    y: int = int32("1+", default=7)


@message(api=ApiKey.FETCH, kind="request", versions="0-2", flexible="2+")
class Drawing:
    name: str = string(default="untitled")
    points: list[Point] = array(Point)
    origin: Point = struct_(Point, "1+", ignorable=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0+", (0, 32767)), ("3", (3, 3)), ("2-10", (2, 10)), ("none", (0, -1)), (None, (0, -1))],
)
def test_version_ranges(text: str | None, expected: tuple[int, int]) -> None:
    assert version_range(text) == expected


def test_fields_start_at_their_defaults() -> None:
    drawing = Drawing()
    assert drawing.name == "untitled"
    assert drawing.points == []
    assert drawing.origin == Point(x=0, y=7)


def test_lists_are_not_shared() -> None:
    for _ in range(INTERPRETED_INSTANCES + 2):
        Drawing().points.append(Point())
        assert Drawing().points == []


def test_default_structs_are_shared_and_refuse_changes() -> None:
    for _ in range(INTERPRETED_INSTANCES + 2):
        assert Drawing().origin is shared_default(Point)
    with pytest.raises(AttributeError, match="assign a new one"):
        Drawing().origin.x = 3
    assert Drawing().origin.x == 0
    assert isinstance(Drawing().origin, Point)


def test_the_first_instances_and_the_later_ones_are_the_same() -> None:
    points = [Point(x=4) for _ in range(2 * INTERPRETED_INSTANCES)]
    assert all(point == points[0] for point in points)


def test_unknown_arguments_are_refused_at_first_and_later() -> None:
    for _ in range(INTERPRETED_INSTANCES + 2):
        with pytest.raises(TypeError):
            Point(z=1)  # type: ignore[call-arg]


def test_positional_arguments_are_refused_at_first_and_later() -> None:
    for _ in range(INTERPRETED_INSTANCES + 2):
        with pytest.raises(TypeError):
            Point(1, 2)  # type: ignore[misc]
        with pytest.raises(TypeError):
            Point(1)  # type: ignore[misc]


def test_instances_take_no_other_attributes() -> None:
    with pytest.raises(AttributeError):
        Point().z = 1  # type: ignore[attr-defined]


def test_equality_compares_class_and_fields() -> None:
    assert Point(x=1) == Point(x=1)
    assert Point(x=1) != Point(x=2)
    assert Point() != Drawing()
    assert Drawing(origin=Point(x=0, y=7)) == Drawing()
    tagged: Any = Point()
    tagged.unknown_tags = {3: b"x"}
    assert tagged != Point()


def test_records_compare_by_content() -> None:
    data = b"batch"
    assert PartitionData(records=data) == PartitionData(records=memoryview(data))


def test_repr_shows_what_is_not_default() -> None:
    assert repr(Drawing()) == "Drawing()"
    drawing = Drawing(name="a", points=[Point(x=1)])
    assert repr(drawing) == "Drawing(name='a', points=[Point(x=1)])"
    large = PartitionProduceData(records=bytes(100))
    assert repr(large) == "PartitionProduceData(records=<100 bytes>)"


def test_the_shared_empty_tags_cannot_be_filled() -> None:
    with pytest.raises(TypeError):
        NO_TAGS[1] = b""


def test_messages_can_be_copied_and_pickled() -> None:
    request = ProduceRequest(
        acks=1,
        topic_data=[TopicProduceData(name="t", partition_data=[PartitionProduceData(index=2)])],
    )
    assert copy.deepcopy(request) == request
    assert pickle.loads(pickle.dumps(request)) == request
    assert copy.deepcopy(FetchRequest()) == FetchRequest()


def test_declarations_tell_their_versions() -> None:
    declared = declaration(Drawing)
    assert (declared.first_version, declared.last_version) == (0, 2)
    assert [declared.is_flexible(version) for version in range(3)] == [False, False, True]
    with pytest.raises(TypeError):
        declaration(EpochEndOffset)


def test_importing_and_making_messages_loads_no_heavy_module() -> None:
    program = (
        "import sys; bare = set(sys.modules)\n"
        "import wire, wire.schemas.produce as produce\n"
        "produce.ProduceRequest(acks=1)\n"
        "print(*sorted(set(sys.modules) - bare))"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    for heavy in ("dataclasses", "enum", "typing", "re", "collections", "functools", "linecache"):
        assert heavy not in found
    for generator in ("wire.encoder", "wire.decoder", "wire.layout"):
        assert generator not in found
    assert [name for name in found if name.startswith("wire.schemas.")] == ["wire.schemas.produce"]
