"""Actions that change the broker's answer, or the frame that carries it."""

from __future__ import annotations

from embedlog import errors
from embedlog.runtime.pending import Pending
from embedlog.testing.faults.actions import Action
from embedlog.testing.faults.items import answered_items, has_field
from embedlog.testing.faults.mapping import afterwards, mapped
from embedlog.testing.faults.messages import changed
from embedlog.testing.faults.paths import path_of
from embedlog.testing.faults.refusals import lost, refuse
from wire.api_keys import ApiKey
from wire.connection import ServerConnection
from wire.error_codes import ErrorCode
from wire.registry import response_class
from wire.schema import Message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.controller.metadata import MetadataImage, PartitionImage
    from embedlog.testing.faults.fired import Fired
    from embedlog.testing.faults.user_code import Guarded
    from embedlog.testing.interception import Call, Proceed
    from wire.schema import Payload


class Throttle(Action):
    """Tell the client to pause: `throttle_time_ms` of the answer. The broker itself does not."""

    name = "throttle"

    def __init__(self, ms: int) -> None:
        self._ms = ms

    @staticmethod
    def can(api_key: int) -> bool:
        """Return whether the answers of an API can throttle."""
        return has_field(response_class(api_key), "throttle_time_ms")

    def perform(self, fired: Fired, proceed: Proceed) -> Any:
        def change(response: Any) -> Any:
            fired.hit()
            return changed(response, throttle_time_ms=self._ms)

        return mapped(proceed(fired.call), change)

    def __str__(self) -> str:
        return f"action='throttle', ms={self._ms}"


class Truncate(Action):
    """Send the first half of the answer's frame, then close the connection.

    In this process there are no frames: the answer is lost.
    """

    name = "truncate"

    def perform(self, fired: Fired, proceed: Proceed) -> Any:
        def cut_short(response: Any) -> Any:
            fired.hit()
            connection: Any = fired.call.context.connection
            if connection is None or response is None:
                return lost(fired.call)
            connection.respond_with(lambda: _half(fired.call, connection, response))
            never: Pending[Any] = Pending()
            return never

        return afterwards(proceed(fired.call), cut_short)


def _half(call: Call, connection: Any, response: Any) -> list[Payload]:
    context = call.context
    frame = b"".join(
        ServerConnection().respond(
            context.correlation_id, context.api_key, context.api_version, response
        )
    )
    connection.close()  # it closes after the bytes are written
    return [frame[: len(frame) // 2]]


class Corrupt(Action):
    """Change the checksum of fetched records; refuse produced records as CORRUPT_MESSAGE."""

    name = "corrupt-crc"
    apis = frozenset({ApiKey.PRODUCE, ApiKey.FETCH})
    is_late = True

    def perform(self, fired: Fired, proceed: Proceed) -> Any:
        call = fired.call
        if call.context.api_key == ApiKey.PRODUCE:
            if not fired.fires():
                return proceed(call)
            fired.hit()
            return refuse(call, errors.CorruptMessage(), fired.items, proceed)
        wanted = None if fired.items is None else {item.key for item in fired.items}

        def change(response: Any) -> Any:
            path = path_of(call.context.api_key, call.context.api_version)
            items = answered_items(path, response, call.broker.topic_name)
            is_wanted = iter([wanted is None or item.key in wanted for item in items])
            topics = [
                changed(topic, partitions=[_spoilt(each, is_wanted) for each in topic.partitions])
                for topic in response.responses
            ]
            if topics == response.responses or not fired.fires():
                return response
            fired.hit()
            return changed(response, responses=topics)

        return mapped(proceed(call), change)


_MAGIC_POSITION = 16
_CRC_POSITION = 17
_CRC_POSITION_BEFORE_BATCHES = 12


def _spoilt(partition: Any, is_wanted: Any) -> Any:
    """Return the answer about a partition with another checksum in its first batch."""
    records = partition.records
    if not next(is_wanted) or records is None or len(records) <= _MAGIC_POSITION:
        return partition
    spoilt = bytearray(records)
    is_batch = spoilt[_MAGIC_POSITION] >= 2
    spoilt[_CRC_POSITION if is_batch else _CRC_POSITION_BEFORE_BATCHES] ^= 0xFF
    return changed(partition, records=bytes(spoilt))


class Stale(Action):
    """Answer Metadata with the leaders and topics of the moment when the rule was made."""

    name = "stale-metadata"
    apis = frozenset({ApiKey.METADATA, ApiKey.DESCRIBE_TOPIC_PARTITIONS})

    def __init__(self, image: MetadataImage) -> None:
        self._image = image

    def perform(self, fired: Fired, proceed: Proceed) -> Any:
        items = fired.items
        wanted = None if items is None else {(each.topic, each.partition) for each in items}

        def change(response: Any) -> Any:
            fired.hit()
            topics = [self._earlier(fired.call, each, wanted) for each in response.topics]
            return changed(response, topics=topics)

        return mapped(proceed(fired.call), change)

    def _earlier(
        self, call: Call, answer: Any, wanted: set[tuple[str | None, int | None]] | None
    ) -> Any:
        name = answer.name or call.broker.topic_name(answer.topic_id)
        if wanted is not None and name not in {topic for topic, _ in wanted}:
            return answer
        topic = self._image.topics_by_name.get(name)
        if topic is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return changed(answer, error_code=code, partitions=[])

        def is_wanted(partition: int) -> bool:
            return wanted is None or bool({(name, partition), (name, None)} & wanted)

        return changed(
            answer,
            partitions=[
                _as_then(each, topic.partitions[each.partition_index])
                if is_wanted(each.partition_index)
                else each
                for each in answer.partitions
                if each.partition_index < len(topic.partitions)
                or not is_wanted(each.partition_index)
            ],
        )


def _as_then(answer: Any, then: PartitionImage) -> Any:
    return changed(
        answer,
        error_code=0 if then.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
        leader_id=then.leader,
        leader_epoch=then.leader_epoch,
        replica_nodes=list(then.replicas),
        isr_nodes=list(then.isr),
    )


_EPOCH_FIELDS = frozenset({"leader_epoch", "committed_leader_epoch"})


class WrongEpoch(Action):
    """Add a number to the leader epochs of an answer.

    An epoch that would become negative stays as it is: epoch 0 has no predecessor.
    """

    name = "wrong-epoch"
    is_late = True
    apis = frozenset(
        {
            ApiKey.METADATA,
            ApiKey.DESCRIBE_TOPIC_PARTITIONS,
            ApiKey.LIST_OFFSETS,
            ApiKey.OFFSET_FOR_LEADER_EPOCH,
            ApiKey.OFFSET_FETCH,
        }
    )

    def __init__(self, by: int) -> None:
        self._by = by

    def perform(self, fired: Fired, proceed: Proceed) -> Any:
        call = fired.call
        items = fired.items
        wanted = None if items is None else {(each.topic, each.partition) for each in items}

        def change(response: Any) -> Any:
            made = self._moved(response, call, wanted, "", None)
            if made is response or not fired.fires():
                return response
            fired.hit()
            return made

        return mapped(proceed(call), change)

    def _moved(
        self,
        message: Any,
        call: Call,
        wanted: set[tuple[str | None, int | None]] | None,
        topic: str,
        partition: int | None,
    ) -> Any:
        """Return a message with other epochs in it, at any depth; the message itself if none."""
        for name in ("name", "topic"):
            topic = getattr(message, name, None) or topic
        if not topic and hasattr(message, "topic_id"):
            topic = call.broker.topic_name(message.topic_id)
        for name in ("partition_index", "partition"):
            partition = getattr(message, name, partition)
        values: dict[str, Any] = {}
        for field in message.__fields__:
            value = getattr(message, field.name)
            if field.name in _EPOCH_FIELDS:
                is_wanted = wanted is None or bool(wanted & {(topic, partition), (topic, None)})
                if is_wanted and value >= 0 and value + self._by >= 0:
                    values[field.name] = value + self._by
            elif isinstance(value, list) and value and isinstance(value[0], Message):
                moved = [self._moved(each, call, wanted, topic, partition) for each in value]
                if any(new is not old for new, old in zip(moved, value, strict=True)):
                    values[field.name] = moved
        return changed(message, **values) if values else message

    def __str__(self) -> str:
        return f"action='wrong-epoch', by={self._by}"


class Answer(Action):
    """Give the answer that a test's function makes from the request and the broker's answer."""

    name = "answer"

    def __init__(self, function: Guarded) -> None:
        self.function = function

    def perform(self, fired: Fired, proceed: Proceed) -> Any:
        def change(response: Any) -> Any:
            fired.hit()
            made = self.function(response, fired.call.request, response)
            if not isinstance(made, type(response)):
                self._refuse(made, type(response))
                return response
            return made

        return mapped(proceed(fired.call), change)

    def _refuse(self, made: Any, wanted: type[Any]) -> None:
        if self.function.failure is None:
            self.function.failure = TypeError(
                f"answer={self.function!r} returned {made!r:.80}; expected a {wanted.__name__}"
            )

    def __str__(self) -> str:
        return f"answer={self.function!r}"
