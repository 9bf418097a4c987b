"""Files of records as lines of JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from embedlog.errors import ConfigError, UnknownTopicOrPartition
from embedlog.testing import Kafka, rec


def test_a_dump_and_a_load_give_the_same_records(any_kafka: Kafka, tmp_path: Path) -> None:
    users, file = any_kafka.topic("users"), tmp_path / "users.jsonl"
    users.put_many(
        [
            rec(key=b"k", value='{"ä": 1}', timestamp=5, partition=1, offset=7),
            rec(key=b"\xff\x00", value=b"\x80", headers=[("h", b"\xfe"), ("h", None)], partition=0),
            rec(key=b"", value=b"", partition=0, headers={"": ""}),
            rec(key=b"gone", value=None, partition=2, timestamp=0),
            rec(value=b'{"base64": "QUJD"}', partition=2),
            rec(value="line\nbreak \u2028", partition=2),
        ]
    )
    assert users.dump(file) == 6
    any_kafka.create_topic("copy", 3)
    copy = any_kafka.topic("copy")
    assert len(copy.load(file, keep_offsets=True)) == 6
    facts = [
        [(e.partition, e.offset, e.timestamp, e.key, e.value, e.headers) for e in topic]
        for topic in (users, copy)
    ]
    assert facts[0] == facts[1]
    again = tmp_path / "again.jsonl"
    copy.dump(again)
    assert again.read_bytes() == file.read_bytes()


def test_offsets_are_new_unless_they_are_kept(kafka: Kafka, tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    kafka.topic("orders").put(b"x", at_offset=5)
    kafka.topic("orders").dump(file)
    assert [each.offset for each in kafka.topic("out").load(str(file))] == [0]


def test_a_file_that_a_person_wrote(kafka: Kafka, tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    file.write_text(
        '{"value": "text"}\n'
        "\n"
        '{"value": {"id": 1}, "key": 7, "headers": {"a": "b"}, "timestamp": 0}\n'
        '{"value": null, "key": "k"}'
    )
    kafka.topic("orders").load(file)
    assert kafka.topic("orders") == [
        rec(value=b"text", key=None),
        rec(value={"id": 1}, key=b"7", headers=[("a", b"b")], timestamp=0),
        rec(value=None, key=b"k"),
    ]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("nonsense", "Expecting value"),
        ("[1]", "expected an object"),
        ('{"vlaue": 1}', "no 'vlaue'; did you mean 'value'"),
        ('{"key": "k"}', 'no "value"; null is a tombstone'),
        ('{"value": "x", "partition": "0"}', "partition '0' is no integer"),
        ('{"value": "x", "timestamp": 1.5}', "timestamp 1.5"),
        ('{"value": {"base64": "!"}}', "base64"),
        ('{"value": "x", "headers": ["a"]}', "expected pairs"),
    ],
)
def test_a_wrong_line_is_named_and_nothing_is_written(
    kafka: Kafka, tmp_path: Path, line: str, text: str
) -> None:
    file = tmp_path / "f.jsonl"
    file.write_text(f'{{"value": "good"}}\n{line}\n')
    with pytest.raises(ConfigError, match=r"f\.jsonl, line 2: ") as error:
        kafka.topic("orders").load(file)
    assert text in str(error.value)
    assert len(kafka.topic("orders")) == 0


def test_a_partition_that_the_topic_lacks_is_refused(kafka: Kafka, tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    file.write_text('{"value": "a"}\n{"value": "b", "partition": 2}\n')
    with pytest.raises(UnknownTopicOrPartition, match="no partition 2"):
        kafka.topic("orders").load(file)
    with pytest.raises(FileNotFoundError):
        kafka.topic("orders").load(tmp_path / "missing.jsonl")
    assert len(kafka.topic("orders")) == 0
