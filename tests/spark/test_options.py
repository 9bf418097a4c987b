"""The options of a read: the connector's rules and words, and embedlog's own."""

from __future__ import annotations

import pickle
import warnings

import pytest

from embedlog.errors import EmbedlogError
from embedlog.spark.errors import IllegalArgument
from embedlog.spark.options import (
    Assign,
    Committed,
    Offsets,
    SourceOptions,
    Subscribe,
    SubscribePattern,
    Timestamp,
    Timestamps,
    Word,
)

BASE = {"path": "/data/log", "subscribe": "t"}


def parse(streaming: bool = False, **options: str) -> SourceOptions:
    return SourceOptions.parse({**BASE, **options}, streaming=streaming)


def refusal(options: dict[str, str], *, streaming: bool = False) -> str:
    with pytest.raises(IllegalArgument) as caught:
        SourceOptions.parse(options, streaming=streaming)
    assert isinstance(caught.value, EmbedlogError)
    assert isinstance(caught.value, ValueError)
    return str(caught.value)


def test_without_options_the_defaults_are_those_of_the_connector() -> None:
    made = parse()
    assert made.subscription == Subscribe(["t"])
    assert (made.starting, made.ending) == (Word("earliest"), Word("latest"))
    assert made.fail_on_data_loss
    assert not made.include_headers
    assert not made.read_committed
    assert made.min_partitions is None
    assert made.max_offsets_per_trigger is None
    assert made.max_trigger_delay_ms == 15 * 60 * 1000
    assert made.poll_timeout_ms == 120_000
    assert made.timestamp_strategy == "error"


def test_the_defaults_of_what_only_embedlog_has() -> None:
    made = parse()
    assert made.table == "records"
    assert made.max_partition_bytes == 128 * 1024 * 1024
    assert made.max_batch_bytes == 8 * 1024 * 1024
    assert made.verify_crc
    assert not made.commit_offsets
    assert (made.group_id, made.group_id_prefix) == (None, "")


def test_a_stream_begins_at_the_latest_and_has_no_end() -> None:
    made = parse(streaming=True)
    assert made.starting == Word("latest")
    assert made.ending is None


def test_names_and_words_are_taken_in_any_case() -> None:
    made = SourceOptions.parse(
        {
            "PATH": "p",
            "SubScribe": "t",
            "STARTINGOFFSETS": "Earliest",
            "failondataloss": "FALSE",
            "Kafka.Isolation.Level": "read_committed",
            "INCLUDEHEADERS": "True",
        },
        streaming=True,
    )
    assert made.starting == Word("earliest")
    assert not made.fail_on_data_loss
    assert made.read_committed
    assert made.include_headers


def test_the_path_wins_over_the_address_and_both_are_kept() -> None:
    made = parse(**{"kafka.bootstrap.servers": "localhost:9092"})
    assert made.path == "/data/log"
    assert made.bootstrap_servers == "localhost:9092"


def test_a_path_keeps_the_space_around_it() -> None:
    assert parse(path="/a/ odd ").path == "/a/ odd "


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("subscribe", "a, b,,a ", Subscribe(["a", "b"])),
        ("subscribePattern", " orders-.* ", SubscribePattern("orders-.*")),
        ("assign", '{"t": [1, 0, 1], "u": [3]}', Assign({"t": [0, 1], "u": [3]})),
    ],
)
def test_the_three_ways_to_subscribe(name: str, text: str, expected: object) -> None:
    assert SourceOptions.parse({"path": "p", name: text}, streaming=False).subscription == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingOffsets": '{"t":{"0":5,"1":-2}}'}, Offsets({"t": {0: 5, 1: -2}})),
        ({"startingTimestamp": " 1000 "}, Timestamp(1000)),
        ({"startingOffsetsByTimestamp": '{"t":{"0":7}}'}, Timestamps({"t": {0: 7}})),
        ({"startingOffsets": "committed", "kafka.group.id": "g"}, Committed("g")),
        (
            {"startingOffsetsByTimestamp": '{"t":{"0":7}}', "startingOffsets": "earliest"},
            Timestamps({"t": {0: 7}}),
        ),
        (
            {"startingTimestamp": "1", "startingOffsetsByTimestamp": '{"t":{"0":7}}'},
            Timestamp(1),
        ),
    ],
)
@pytest.mark.parametrize("streaming", [False, True])
def test_where_a_read_starts(options: dict[str, str], expected: object, streaming: bool) -> None:
    assert SourceOptions.parse({**BASE, **options}, streaming=streaming).starting == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"endingOffsets": "latest"}, Word("latest")),
        ({"endingOffsets": '{"t":{"0":5,"1":-1}}'}, Offsets({"t": {0: 5, 1: -1}})),
        ({"endingTimestamp": "1000", "endingOffsets": "latest"}, Timestamp(1000)),
        ({"endingOffsetsByTimestamp": '{"t":{"0":7}}'}, Timestamps({"t": {0: 7}})),
    ],
)
def test_where_a_batch_ends(options: dict[str, str], expected: object) -> None:
    assert parse(**options).ending == expected


def test_a_stream_may_start_some_partitions_at_the_latest() -> None:
    assert parse(True, startingOffsets='{"t":{"0":-1}}').starting == Offsets({"t": {0: -1}})


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("0", 0),
        ("250", 250),
        ("250ms", 250),
        ("30 s", 30_000),
        ("2Min", 120_000),
        ("1h", 3_600_000),
    ],
)
def test_a_time_has_sparks_units(text: str, ms: int) -> None:
    assert parse(True, maxTriggerDelay=text).max_trigger_delay_ms == ms


@pytest.mark.parametrize(
    ("text", "size"), [("1", 1), ("512k", 512 << 10), ("64MB", 64 << 20), ("1g", 1 << 30)]
)
def test_a_size_has_sparks_units(text: str, size: int) -> None:
    made = parse(maxPartitionBytes=text, maxBatchBytes=text)
    assert (made.max_partition_bytes, made.max_batch_bytes) == (size, size)


def test_numbers_of_a_stream() -> None:
    made = parse(
        True,
        minPartitions="8",
        maxRecordsPerPartition="1000",
        maxOffsetsPerTrigger="500",
        minOffsetsPerTrigger="500",
        **{"kafkaConsumer.pollTimeoutMs": "10"},
    )
    assert made.min_partitions == 8
    assert made.max_records_per_partition == 1000
    assert made.max_offsets_per_trigger == made.min_offsets_per_trigger == 500
    assert made.poll_timeout_ms == 10


def test_settings_of_the_consumer_go_on_and_those_that_are_options_do_not() -> None:
    made = parse(
        **{
            "kafka.bootstrap.servers": "s",
            "kafka.group.id": "g",
            "kafka.isolation.level": "read_uncommitted",
            "kafka.key.serializer": "ignored, as it is the sink's",
            "kafka.Fetch.Max.Wait.Ms": "10",
            "kafka.sasl.password": " with space ",
        }
    )
    assert made.client_settings == {"fetch.max.wait.ms": "10", "sasl.password": " with space "}
    assert made.group_id == "g"


def test_a_table_needs_no_subscription() -> None:
    assert SourceOptions.parse({"path": "p", "table": "Segments"}, streaming=False).table == (
        "segments"
    )


def test_options_can_be_pickled() -> None:
    made = parse(startingOffsets='{"t":{"0":5}}')
    assert pickle.loads(pickle.dumps(made)) == made


REFUSED: list[tuple[dict[str, str], str]] = [
    (
        {"subscribe": "t"},
        "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka consumer",
    ),
    (
        {"path": "p"},
        "One of the following options must be specified for Kafka source: "
        "subscribe, subscribepattern, assign. See the docs for more details.",
    ),
    (
        {**BASE, "assign": '{"t":[0]}'},
        "Only one of the following options can be specified for Kafka source: "
        "subscribe, subscribepattern, assign. See the docs for more details.",
    ),
    (
        {"path": "p", "subscribe": ""},
        "No topics to subscribe to as specified value for option 'subscribe' is ''",
    ),
    (
        {"path": "p", "subscribePattern": " "},
        "Pattern to subscribe is empty as specified value for option 'subscribePattern' is ' '",
    ),
    ({"path": "p", "subscribePattern": "("}, "subscribePattern '(' is no pattern"),
    (
        {"path": "p", "assign": "t"},
        "No topicpartitions to assign as specified value for option 'assign' is 't'",
    ),
    (
        {"path": "p", "assign": '{"t": 0}'},
        'Expected e.g. {"topicA":[0,1],"topicB":[0,1]}, got {"t": 0}',
    ),
    ({"path": "p", "assign": '{"t": [-1]}'}, 'Expected e.g. {"topicA":[0,1],"topicB":[0,1]}, got'),
    (
        {**BASE, "startingOffsets": "first"},
        'Expected e.g. {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}, got first',
    ),
    ({**BASE, "startingOffsets": '{"t":{"0":1.5}}'}, 'Expected e.g. {"topicA":{"0":23,"1":-1}'),
    ({**BASE, "startingOffsets": '{"t":{"zero":1}}'}, 'Expected e.g. {"topicA":{"0":23,"1":-1}'),
    ({**BASE, "startingOffsets": '{"t":{"0":true}}'}, 'Expected e.g. {"topicA":{"0":23,"1":-1}'),
    ({**BASE, "startingOffsets": "[" * 100_000}, 'Expected e.g. {"topicA":{"0":23,"1":-1}'),
    ({**BASE, "startingOffsets": '{"t":{"0":-3}}'}, "offset -3 for t-0: expected 0 or more"),
    ({**BASE, "startingOffsets": "committed"}, "startingOffsets=committed needs the option"),
    ({**BASE, "startingTimestamp": "soon"}, "Expected a single long value, got soon"),
    ({**BASE, "startingTimestamp": "9" * 19}, "Expected a single long value, got 999"),
    ({**BASE, "startingTimestamp": "-5"}, "The target time is -5. The target time cannot be neg"),
    (
        {**BASE, "startingOffsetsByTimestamp": "x"},
        'Expected e.g. {"topicA": {"0": 123456789, "1": 123456789},\n'
        '"topicB": {"0": 123456789, "1": 123456789}}, got x',
    ),
    (
        {**BASE, "startingOffsetsByTimestamp": '{"t":{"0":-1}}'},
        "The target time for partition t-0 is -1. The target time cannot be negative.",
    ),
    (
        {**BASE, "startingOffsetsByTimestampStrategy": "earliest"},
        "startingOffsetsByTimestampStrategy: expected one of error, latest, got 'earliest'",
    ),
    ({**BASE, "minPartitions": "0"}, "minPartitions must be positive"),
    ({**BASE, "minPartitions": "two"}, "minPartitions: expected a whole number"),
    ({**BASE, "minPartitions": "2147483648"}, "minPartitions: expected a whole number"),
    ({**BASE, "maxRecordsPerPartition": "-1"}, "maxRecordsPerPartition must be positive"),
    (
        {**BASE, "minOffsetsPerTrigger": "10", "maxOffsetsPerTrigger": "5"},
        "The value of minOffsetPerTrigger(10) is higher than the maxOffsetsPerTrigger(5).",
    ),
    ({**BASE, "maxTriggerDelay": "soon"}, "maxTriggerDelay: expected a time such as 500ms"),
    ({**BASE, "maxTriggerDelay": "5 weeks"}, "maxTriggerDelay: expected a time such as 500ms"),
    ({**BASE, "maxPartitionBytes": "0"}, "maxPartitionBytes must be positive"),
    ({**BASE, "maxBatchBytes": "8 apples"}, "maxBatchBytes: expected a size such as"),
    ({**BASE, "failOnDataLoss": "maybe"}, "failOnDataLoss: expected true or false, got 'maybe'"),
    ({**BASE, "table": "rows"}, "table: expected one of records, batches, segments, partitions"),
    ({**BASE, "verify": "all"}, "verify: expected one of crc, none, got 'all'"),
    ({**BASE, "commitOffsets": "true"}, "commitOffsets needs the option kafka.group.id"),
    ({**BASE, "kafka.auto.offset.reset": "x"}, "Kafka option 'auto.offset.reset' is not supported"),
    (
        {**BASE, "kafka.key.deserializer": "x"},
        "Kafka option 'key.deserializer' is not supported as keys are deserialized as byte arrays "
        "with ByteArrayDeserializer. Use DataFrame operations to explicitly deserialize the keys.",
    ),
    (
        {**BASE, "kafka.value.deserializer": "x"},
        "Kafka option 'value.deserializer' is not supported as values are deserialized as byte "
        "arrays with ByteArrayDeserializer.",
    ),
    (
        {**BASE, "kafka.enable.auto.commit": "true"},
        "Kafka option 'enable.auto.commit' is not supported",
    ),
    (
        {**BASE, "kafka.interceptor.classes": "x"},
        "Kafka option 'interceptor.classes' is not supported",
    ),
    (
        {**BASE, "kafka.isolation.level": "serializable"},
        "Invalid value serializable for configuration isolation.level",
    ),
]


@pytest.mark.parametrize(("options", "text"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused_is_refused_in_batches_and_streams(
    options: dict[str, str], text: str
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for streaming in (False, True):
            assert refusal(options, streaming=streaming).startswith(text), streaming


REFUSED_IN_A_BATCH: list[tuple[dict[str, str], str]] = [
    (
        {"startingOffsets": "latest"},
        "starting offset can't be latest for batch queries on Kafka",
    ),
    (
        {"startingOffsets": '{"t":{"0":-2,"1":-1}}'},
        "startingOffsets for t-1 can't be latest for batch queries on Kafka",
    ),
    ({"endingOffsets": "earliest"}, "ending offset can't be earliest for batch queries on Kafka"),
    (
        {"endingOffsets": '{"t":{"0":-2}}'},
        "ending offset for t-0 can't be earliest for batch queries on Kafka",
    ),
    (
        {"startingOffsets": '{"t":{"0":20}}', "endingOffsets": '{"t":{"0":10}}'},
        "The specified start offset 20 is greater than the end offset 10 for topic t partition 0.",
    ),
    (
        {
            "startingOffsetsByTimestamp": '{"t":{"0":20}}',
            "endingOffsetsByTimestamp": '{"t":{"0":10}}',
        },
        "The specified start timestamp 20 is greater than the end timestamp 10 for topic t "
        "partition 0.",
    ),
    (
        {"startingOffsets": '{"t":{"0":0}}', "endingOffsets": '{"t":{"1":10}}'},
        "The specified start offset and end offset should have the same topic-partitions.\n",
    ),
]


@pytest.mark.parametrize(
    ("options", "text"), REFUSED_IN_A_BATCH, ids=range(len(REFUSED_IN_A_BATCH))
)
def test_bounds_that_a_batch_refuses(options: dict[str, str], text: str) -> None:
    given = {**BASE, **options}
    assert refusal(given).startswith(text)
    # The read may still become a stream.
    SourceOptions.parse(given, streaming=False, check=False)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("endingOffsets", "latest", "ending offset not valid in streaming queries"),
        ("endingOffsetsByTimestamp", '{"t":{"0":1}}', "ending timestamp not valid in streaming"),
        ("endingTimestamp", "1", "ending timestamp not valid in streaming queries"),
    ],
)
def test_a_stream_refuses_an_end(name: str, text: str, expected: str) -> None:
    assert refusal({**BASE, name: text}, streaming=True).startswith(expected)


def test_start_and_end_may_both_be_words_of_a_partition() -> None:
    parse(startingOffsets='{"t":{"0":20}}', endingOffsets='{"t":{"0":-1}}')
    parse(startingOffsets='{"t":{"0":-2}}', endingOffsets='{"t":{"0":0}}')


def warned(options: dict[str, str], *, check: bool = True) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SourceOptions.parse({**BASE, **options}, streaming=False, check=check)
    assert all(each.filename == __file__ for each in caught)
    return [str(each.message) for each in caught]


def test_an_unknown_option_is_warned_of_with_the_nearest_name() -> None:
    assert warned({"startingOffset": "earliest", "foo": "1"}) == [
        "the option startingoffset is not known, and ignored; did you mean startingOffsets?",
        "the option foo is not known, and ignored",
    ]


def test_what_only_streams_have_is_warned_of_in_a_batch() -> None:
    assert warned({"maxOffsetsPerTrigger": "5"}) == [
        "maxOffsetsPerTrigger option ignored in batch queries"
    ]


def test_nothing_is_warned_of_while_it_is_unknown_what_is_made() -> None:
    assert warned({"foo": "1", "maxOffsetsPerTrigger": "5"}, check=False) == []


def test_the_options_of_a_write_and_any_setting_of_kafka_are_known() -> None:
    assert warned({"topic": "t", "txnAppId": "a", "txnVersion": "1", "kafka.any": "x"}) == []
