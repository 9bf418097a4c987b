"""Topics to make, and what was made of them.

Apart from the results of other calls, as the first thing that most programs do is to make a topic.
"""

from __future__ import annotations

from embedlog.client import arguments
from embedlog.client.admin.value import AdminValue
from embedlog.common import uuid_to_text
from embedlog.errors import error_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from wire.schemas.create_topics import CreatableTopic, CreatableTopicResult


class NewTopic(AdminValue):
    """A topic to make. -1 leaves a count to the broker; or name the brokers of each partition."""

    name: str
    partition_count: int
    replication_factor: int
    configs: dict[str, Any]
    assignments: dict[int, list[int]]

    def __init__(
        self,
        name: str,
        partition_count: int = -1,
        replication_factor: int = -1,
        *,
        configs: Mapping[str, Any] | None = None,
        assignments: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        call = "NewTopic"
        arguments.name(name, call, "name", what="a topic's name")
        count = arguments.partition_count(partition_count, call, "partition_count")
        factor = arguments.number(
            replication_factor, call, "replication_factor", "a number as int", lowest=-1
        )
        settings = dict(arguments.mapping(configs or {}, call, "configs", "name: value"))
        given = arguments.mapping(assignments or {}, call, "assignments", "partition: node ids")
        nodes = {
            arguments.partition_number(number, call, "assignments: key"): arguments.names(
                ids, call, f"assignments: {number}", what="node ids", kinds=(int,)
            )
            for number, ids in given.items()
        }
        super().__init__(name, count, factor, settings, nodes)


class CreatedTopic(AdminValue):
    """A topic that was made (or would have been): its id and what the broker filled in."""

    name: str
    topic_id: bytes
    partition_count: int
    replication_factor: int
    configs: dict[str, str | None]

    @property
    def topic_id_text(self) -> str:
        """The id as Kafka's tools print it."""
        return uuid_to_text(self.topic_id)


def creatable(topic: NewTopic) -> CreatableTopic:
    """The topic as a CreateTopics request asks for it."""
    from wire.schemas.create_topics import (
        CreatableReplicaAssignment,
        CreatableTopic,
        CreatableTopicConfig,
    )

    return CreatableTopic(
        name=topic.name,
        num_partitions=-1 if topic.assignments else topic.partition_count,
        replication_factor=-1 if topic.assignments else topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(ids))
            for index, ids in topic.assignments.items()
        ],
        configs=[
            CreatableTopicConfig(name=key, value=arguments.setting_text(value))
            for key, value in topic.configs.items()
        ],
    )


def created(made: CreatableTopicResult) -> CreatedTopic:
    """What the response says of a topic; raises the `KafkaError` of one that was refused."""
    if made.error_code:
        raise error_for(made.error_code, made.error_message)
    return CreatedTopic(
        made.name,
        made.topic_id,
        made.num_partitions,
        made.replication_factor,
        {config.name: config.value for config in made.configs or []},
    )
