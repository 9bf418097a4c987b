"""Encoding and decoding by example: handwritten bytes, versions, and errors."""

from __future__ import annotations

import traceback
import tracemalloc
from typing import Any

import pytest

import wire
from wire.compiler import decode_from, encode_into
from wire.encoder import PIECES_MAX, LimitedPieces
from wire.errors import MessageTooLarge
from wire.schemas.add_partitions_to_txn import AddPartitionsToTxnRequest
from wire.schemas.api_versions import ApiVersionsResponse
from wire.schemas.consumer_group_metadata import (
    ClassicMemberMetadata,
    ConsumerGroupMemberMetadataValue,
)
from wire.schemas.create_topics import CreateTopicsResponse
from wire.schemas.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from wire.schemas.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest
from wire.schemas.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from wire.schemas.find_coordinator import FindCoordinatorRequest
from wire.schemas.heartbeat import HeartbeatRequest
from wire.schemas.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from wire.schemas.list_groups import ListGroupsRequest
from wire.schemas.metadata import MetadataRequest, MetadataRequestTopic
from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.schemas.sasl_handshake import SaslHandshakeRequest

VECTORS: list[tuple[Any, int, str]] = [
    # old form: int16 and int32 lengths
    (HeartbeatRequest(group_id="g", generation_id=5, member_id="m"), 0, "000167 00000005 00016d"),
    # v3 adds a nullable string: -1 is null
    (HeartbeatRequest(group_id="g", member_id="m"), 3, "000167 00000000 00016d ffff"),
    # v4 is flexible: lengths are varints of length + 1, 0 is null, the struct ends in tags
    (HeartbeatRequest(group_id="g", member_id="é"), 4, "0267 00000000 03c3a9 00 00"),
    (MetadataRequest(topics=None), 1, "ffffffff"),
    (MetadataRequest(topics=[]), 4, "00000000 01"),
    (MetadataRequest(topics=None), 9, "00 01 00 00 00"),
    (
        MetadataRequest(topics=[MetadataRequestTopic(name="t")]),
        12,
        "02 00000000000000000000000000000000 0274 00 01 00 00",
    ),
    # a nullable struct: -1 or 1 in one byte
    (DescribeTopicPartitionsRequest(), 0, "01 000007d0 ff 00"),
    (
        DescribeTopicPartitionsRequest(cursor=Cursor(topic_name="t", partition_index=1)),
        0,
        "01 000007d0 01 0274 00000001 00 00",
    ),
    # a tagged field: count, tag, size, value
    (
        FetchRequest(cluster_id="c", max_wait_ms=1, min_bytes=2, max_bytes=3),
        12,
        "ffffffff 00000001 00000002 00000003 00 00000000 ffffffff 01 01 01 01 00 02 0263",
    ),
    (ApiVersionsResponse(error_code=35), 0, "0023 00000000"),
    (ApiVersionsResponse(zk_migration_ready=True), 3, "0000 01 00000000 01 03 01 01"),
    # a tagged nullable struct: a varint 1 before it
    (
        ConsumerGroupMemberMetadataValue(
            client_id="c",
            client_host="h",
            instance_id=None,
            rack_id=None,
            subscribed_topic_regex=None,
            server_assignor=None,
            classic_member_metadata=ClassicMemberMetadata(session_timeout_ms=9),
        ),
        0,
        "00 00 0263 0268 01 00 ffffffff 00 01 00 07 01 00000009 01 00",
    ),
    (SaslHandshakeRequest(mechanism="PLAIN"), 1, "0005504c41494e"),
    (ListGroupsRequest(states_filter=["Stable"]), 4, "02 07537461626c65 00"),
]


@pytest.mark.parametrize(("message", "version", "text"), VECTORS)
def test_bytes_are_those_written_down(message: Any, version: int, text: str) -> None:
    data = bytes.fromhex(text)
    assert wire.encode(message, version).hex() == data.hex()
    assert wire.decode(type(message), version, data) == message


def produce_request(*payloads: Any) -> ProduceRequest:
    partitions = [PartitionProduceData(index=i, records=data) for i, data in enumerate(payloads)]
    return ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=partitions)])


@pytest.mark.parametrize("size", [0, 1, 126, 127, 1023, 1024, 16381, 16382, 16383, 70000, 2100000])
def test_records_of_any_size_pass_every_version(size: int) -> None:
    request = produce_request(bytes(size), b"x")
    for version in (2, 3, 8, 9, 12):
        data = wire.encode(request, version)
        assert wire.decode(ProduceRequest, version, data) == request, version
        assert b"".join(wire.encode_buffers(request, version)) == data, version


def test_large_records_are_not_copied() -> None:
    large, small = bytearray(5000), b"x" * 100
    buffers = wire.encode_buffers(produce_request(large, small, large), 9)
    assert [len(buffer) for buffer in buffers[1::2]] == [5000, 5000]
    for buffer in buffers[1::2]:
        assert isinstance(buffer, memoryview)
        assert buffer.obj is large
    assert small in bytes(buffers[2])


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview])
def test_decoded_records_are_views_of_the_input(make: Any) -> None:
    data = make(wire.encode(produce_request(b"y" * 50), 9))
    records = wire.decode(ProduceRequest, 9, data).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records == b"y" * 50
    assert records.obj is (data.obj if isinstance(data, memoryview) else data)


def test_records_of_any_view_are_measured_in_bytes() -> None:
    numbers = memoryview(bytes(range(8))).cast("i")
    data = wire.encode(produce_request(numbers), 9)
    records = wire.decode(ProduceRequest, 9, data).topic_data[0].partition_data[0].records
    assert records == bytes(range(8))


def test_null_records_stay_null() -> None:
    for version in (3, 9):
        data = wire.encode(produce_request(None), version)
        decoded = wire.decode(ProduceRequest, version, data)
        assert decoded.topic_data[0].partition_data[0].records is None


def test_a_value_the_version_cannot_carry_is_refused() -> None:
    request = HeartbeatRequest(group_id="g", group_instance_id="static")
    with pytest.raises(wire.UnsupportedField) as caught:
        wire.encode(request, 2)
    error = caught.value
    assert (error.message, error.field, error.version) == (
        "HeartbeatRequest",
        "group_instance_id",
        2,
    )
    assert wire.decode(HeartbeatRequest, 3, wire.encode(request, 3)) == request


def test_a_field_inside_a_struct_is_refused_too() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(topic_id=b"x" * 16, name="t")])
    assert wire.decode(MetadataRequest, 9, wire.encode(request, 9)).topics == [
        MetadataRequestTopic(name="t")
    ]  # the id is ignorable
    response = FetchResponse(
        responses=[FetchableTopicResponse(partitions=[PartitionData(preferred_read_replica=2)])]
    )
    with pytest.raises(wire.UnsupportedField):
        wire.encode(response, 10)


def test_ignorable_values_are_dropped() -> None:
    request = JoinGroupRequest(
        rebalance_timeout_ms=3, protocols=[JoinGroupRequestProtocol(name="range")]
    )
    decoded = wire.decode(JoinGroupRequest, 0, wire.encode(request, 0))
    assert decoded.rebalance_timeout_ms == -1


def test_unknown_tags_are_kept_and_written_back() -> None:
    data = bytes.fromhex("0267 00000000 01 00 02 05 02 aabb 07 00")
    request: Any = wire.decode(HeartbeatRequest, 4, data)
    assert request.unknown_tags == {5: b"\xaa\xbb", 7: b""}
    assert wire.encode(request, 4) == data


def test_unknown_tags_stand_between_known_ones() -> None:
    response: Any = ApiVersionsResponse(zk_migration_ready=True, finalized_features_epoch=1)
    response.unknown_tags = {2**20: b"z", 9: b""}
    data = wire.encode(response, 3)
    assert data.hex() == "0000010000000004010800000000000000010301010900808040017a"
    assert wire.decode(ApiVersionsResponse, 3, data) == response


def test_tags_out_of_order_and_repeated_are_tolerated() -> None:
    data = bytes.fromhex("0000 01 00000000 03 03 01 00 01 08 0000000000000005 03 01 01")
    response = wire.decode(ApiVersionsResponse, 3, data)
    assert response.finalized_features_epoch == 5
    assert response.zk_migration_ready


def test_a_tagged_field_longer_than_its_size_is_malformed() -> None:
    with pytest.raises(wire.MalformedMessage, match="finalized_features_epoch"):
        wire.decode(
            ApiVersionsResponse, 3, bytes.fromhex("0000 01 00000000 01 01 04 0000000000000005")
        )


def test_what_follows_a_tagged_field_inside_its_size_is_skipped() -> None:
    data = bytes.fromhex("0000 01 00000000 01 03 02 01 ff")
    assert wire.decode(ApiVersionsResponse, 3, data).zk_migration_ready


def test_default_tagged_structs_are_not_written() -> None:
    equal = PartitionData(diverging_epoch=EpochEndOffset(epoch=-1, end_offset=-1))
    set_ = PartitionData(diverging_epoch=EpochEndOffset(epoch=4, end_offset=9))
    sizes = []
    for partition in (PartitionData(), equal, set_):
        response = FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])
        data = wire.encode(response, 12)
        assert wire.decode(FetchResponse, 12, data) == response
        sizes.append(len(data))
    assert sizes[0] == sizes[1]
    assert sizes[2] == sizes[0] + 2 + 13


def test_bad_utf8_is_replaced() -> None:
    request = wire.decode(HeartbeatRequest, 0, bytes.fromhex("0003 67ff67 00000000 0001 6d"))
    assert request.group_id == "g�g"


@pytest.mark.parametrize(
    ("cls", "version", "text"),
    [
        (HeartbeatRequest, 0, "ffff 00000000 00016d"),  # null string
        (HeartbeatRequest, 4, "00 00000000 0267 00 00"),
        (MetadataRequest, 0, "ffffffff"),  # null array
        (FindCoordinatorRequest, 4, "00 00 00"),
        (ListGroupsRequest, 4, "02 00 00"),  # null inside an array
        (MetadataRequest, 0, "7fffffff"),  # more elements than bytes
        (MetadataRequest, 9, "ffffffff0f 01 00 00 00"),
        (HeartbeatRequest, 0, "0009 67"),  # a string past the end
        (HeartbeatRequest, 4, "80808080808001 00"),  # a varint that does not end
        (ApiVersionsResponse, 3, "0000 01 00000000 01 09 7f 00"),  # a tag past the end
    ],
)
def test_malformed_bytes_are_refused(cls: type[Any], version: int, text: str) -> None:
    with pytest.raises(wire.MalformedMessage, match=cls.__name__):
        wire.decode(cls, version, bytes.fromhex(text))


def test_negative_lengths_of_nullable_fields_are_null() -> None:
    data = bytes.fromhex("000167 00000000 00016d fffe")
    assert wire.decode(HeartbeatRequest, 3, data).group_instance_id is None
    assert wire.decode(MetadataRequest, 1, bytes.fromhex("fffffffe")).topics is None


@pytest.mark.parametrize("version", [0, 4])
def test_strings_end_at_32767_bytes(version: int) -> None:
    longest = HeartbeatRequest(group_id="g" * 32767)
    assert wire.decode(HeartbeatRequest, version, wire.encode(longest, version)) == longest
    with pytest.raises(wire.InvalidMessage):
        wire.encode(HeartbeatRequest(group_id="g" * 32768), version)


def test_a_compact_string_of_more_is_malformed() -> None:
    data = bytes.fromhex("818002") + b"g" * 32768 + bytes.fromhex("00000000 0267 00 00")
    with pytest.raises(wire.MalformedMessage, match="32768 bytes"):
        wire.decode(HeartbeatRequest, 4, data)


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (HeartbeatRequest(group_id=None), "group_id is null"),
        (HeartbeatRequest(generation_id=2**31), "generation_id is 2147483648, which is no int32"),
        (HeartbeatRequest(generation_id="1"), "no int32"),
        (HeartbeatRequest(group_id="\ud800"), "group_id is .* no string"),
        (MetadataRequest(topics=5), "topics is 5, which is no list"),
        (MetadataRequest(topics=["t"]), "is 't', not a MetadataRequestTopic"),
        (ListGroupsRequest(states_filter=[None]), r"states_filter\[\] is null"),
        (FetchRequest(cluster_id=3), "cluster_id is 3"),
        (
            ProduceRequest(topic_data=[TopicProduceData(partition_data=None)]),
            r"topic_data\[\].partition_data is null",
        ),
        (
            ProduceRequest(
                topic_data=[TopicProduceData(partition_data=[PartitionProduceData(records="x")])]
            ),
            r"partition_data\[\].records is 'x', which is no records",
        ),
    ],
)
def test_values_without_an_encoding_are_named(request_: Any, reason: str) -> None:
    version = wire.declaration(type(request_)).last_version
    if isinstance(request_, FetchRequest):
        version = 12
    with pytest.raises(wire.InvalidMessage, match=reason):
        wire.encode(request_, version)


def test_uuids_have_16_bytes() -> None:
    topic = TopicProduceData(topic_id=b"short")
    with pytest.raises(
        wire.InvalidMessage, match=r"topic_data\[\].topic_id is b'short', which is no uuid"
    ):
        wire.encode(ProduceRequest(topic_data=[topic]), 13)


@pytest.mark.parametrize("version", [-1, 5])
def test_versions_that_do_not_exist_are_refused(version: int) -> None:
    with pytest.raises(wire.UnknownVersion, match="0-4"):
        wire.encode(HeartbeatRequest(), version)
    with pytest.raises(wire.UnknownVersion):
        wire.decode(HeartbeatRequest, version, b"")
    with pytest.raises(wire.UnknownVersion):
        wire.explain(HeartbeatRequest, version)


def test_a_struct_alone_cannot_be_encoded() -> None:
    with pytest.raises(TypeError, match="not declared as a message"):
        wire.encode(EpochEndOffset(), 0)


def test_explain_shows_the_generated_source() -> None:
    text = wire.explain(AddPartitionsToTxnRequest, 3)
    assert "def encode(m, out, append, buffers):" in text
    assert "def decode(buf, pos, end, limit=50000):" in text
    compile(text, "explained", "exec")


def test_tracebacks_show_generated_lines() -> None:
    try:
        wire.encode(CreateTopicsResponse(throttle_time_ms="soon"), 5)
    except wire.InvalidMessage as error:
        assert error.__cause__ is not None
        text = "".join(traceback.format_exception(error.__cause__))
        assert "m.throttle_time_ms" in text
    else:
        pytest.fail("a string was packed as a number")


@pytest.mark.slow
def test_a_request_has_fifty_thousand_elements_at_most() -> None:
    def metadata(count: int) -> bytes:
        return wire.encode(MetadataRequest(topics=[MetadataRequestTopic(name="")] * count), 1)

    assert len(wire.decode(MetadataRequest, 1, metadata(50_000)).topics) == 50_000
    with pytest.raises(wire.MalformedMessage, match="more than the 50000 elements"):
        wire.decode(MetadataRequest, 1, metadata(50_001))


@pytest.mark.slow
def test_elements_count_together_however_deep_they_are() -> None:
    topic = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0)] * 1_000)
    request = ProduceRequest(topic_data=[topic] * 50)
    with pytest.raises(wire.MalformedMessage, match="more than the 50000 elements"):
        wire.decode(ProduceRequest, 9, wire.encode(request, 9))
    request.topic_data = [topic] * 49
    assert wire.decode(ProduceRequest, 9, wire.encode(request, 9)) == request


def test_whoever_decodes_a_request_says_how_many_elements_it_may_have() -> None:
    frame = wire.encode(MetadataRequest(topics=[MetadataRequestTopic(name="")] * 3), 1)
    assert len(decode_from(MetadataRequest, 1, frame, 0, 3)[0].topics) == 3
    with pytest.raises(wire.MalformedMessage, match="more than the 2 elements"):
        decode_from(MetadataRequest, 1, frame, 0, 2)


@pytest.mark.slow
def test_a_long_answer_takes_little_room_beside_itself() -> None:
    config = DescribeConfigsResourceResult(name="some.setting", value="some value")
    results = [DescribeConfigsResult(resource_name="r", configs=[config] * 40)] * 2_000
    response = DescribeConfigsResponse(results=results)
    # Throttle time, one byte for the count of one result and two for 2,000; the tagged fields.
    (alone,) = {wire.encode(DescribeConfigsResponse(results=[each]), 4)[5:-1] for each in results}
    tracemalloc.start()
    try:
        encoded = wire.encode(response, 4)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert encoded[6:-1] == alone * 2_000
    assert peak < 2 * len(encoded) + PIECES_MAX * 100, (peak, len(encoded))


def test_a_message_that_becomes_too_long_is_not_encoded_to_its_end() -> None:
    config = DescribeConfigsResourceResult(name="n", value="v" * 1_000)
    result = DescribeConfigsResult(resource_name="r", configs=[config] * 1_000)
    response = DescribeConfigsResponse(results=[result] * 100)
    out = LimitedPieces(5_000_000)
    with pytest.raises(MessageTooLarge, match="more than the 5000000 bytes"):
        encode_into(response, 4, out, None)
    assert 5_000_000 < sum(map(len, out)) < 10_000_000, "of 100,000,000"


@pytest.mark.slow
def test_responses_may_have_any_number_of_elements() -> None:
    topic = FetchableTopicResponse(topic="t", partitions=[PartitionData()] * 1_000)
    response = FetchResponse(responses=[topic] * 101)
    assert len(wire.decode(FetchResponse, 4, wire.encode(response, 4)).responses) == 101


def test_a_section_has_a_hundred_tagged_fields_at_most() -> None:
    request = HeartbeatRequest(group_id="g", member_id="m")
    request.unknown_tags = dict.fromkeys(range(100), b"")
    assert wire.decode(HeartbeatRequest, 4, wire.encode(request, 4)) == request
    request.unknown_tags = dict.fromkeys(range(101), b"")
    with pytest.raises(wire.MalformedMessage, match="100 elements"):
        wire.decode(HeartbeatRequest, 4, wire.encode(request, 4))


def test_elements_of_all_arrays_and_tagged_fields_count_together() -> None:
    topic = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0)] * 2)
    frame = wire.encode(ProduceRequest(topic_data=[topic] * 2), 9)
    assert decode_from(ProduceRequest, 9, frame, 0, 6)
    with pytest.raises(wire.MalformedMessage, match="more than the 5 elements"):
        decode_from(ProduceRequest, 9, frame, 0, 5)
    request = HeartbeatRequest(group_id="g", member_id="m")
    request.unknown_tags = dict.fromkeys(range(3), b"")
    frame = wire.encode(request, 4)
    assert decode_from(HeartbeatRequest, 4, frame, 0, 3)
    with pytest.raises(wire.MalformedMessage, match="more than the 2 elements"):
        decode_from(HeartbeatRequest, 4, frame, 0, 2)


def test_a_tagged_field_behind_one_that_is_longer_than_expected_is_read() -> None:
    data = bytes.fromhex("0000 01 00000000 02 03 02 01 ff 01 08 0000000000000005")
    response = wire.decode(ApiVersionsResponse, 3, data)
    assert response.zk_migration_ready
    assert response.finalized_features_epoch == 5


def test_an_unknown_tagged_field_that_passes_the_end_is_malformed() -> None:
    data = bytes.fromhex("0267 00000000 01 00 01 05 03 aabb")
    with pytest.raises(wire.MalformedMessage, match="tag of 3 bytes"):
        wire.decode(HeartbeatRequest, 4, data)
