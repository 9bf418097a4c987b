"""`NewTopic` and `CreatedTopic`, with their requests and answers.

They have a file of their own, because most programs create a topic first, and this call shall
import little.
"""

from __future__ import annotations

from embedlog.client import arguments
from embedlog.client.admin.results import AdminValue
from embedlog.common import uuid_to_text
from embedlog.errors import error_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from wire.schemas.create_topics import CreatableTopic, CreatableTopicResult


class NewTopic(AdminValue):
    """A topic to create. For a count or factor of -1 the broker uses its default.

    `assignments` are the node ids of each partition's replicas; they replace the count and the
    factor.
    """

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
    """A created (or validated) topic: its id and the broker's choices."""

    name: str
    topic_id: bytes
    partition_count: int
    replication_factor: int
    configs: dict[str, str | None]

    @property
    def topic_id_text(self) -> str:
        """The topic id in the format of Kafka's tools."""
        return uuid_to_text(self.topic_id)


def creatable(topic: NewTopic) -> CreatableTopic:
    """Return the topic for a CreateTopics request."""
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
    """Return the created topic from a response; raise its error if it was refused."""
    if made.error_code:
        raise error_for(made.error_code, made.error_message)
    return CreatedTopic(
        made.name,
        made.topic_id,
        made.num_partitions,
        made.replication_factor,
        {config.name: config.value for config in made.configs or []},
    )
