"""Creation of one topic by a controller."""

from __future__ import annotations

from collections.abc import Mapping

from embedlog.controller.controller import Controller, NewTopic
from embedlog.controller.metadata import TopicImage
from embedlog.errors import KafkaError


def create_topic(
    controller: Controller,
    name: str,
    *,
    partition_count: int = -1,
    replication_factor: int = -1,
    configs: Mapping[str, str | None] = {},
    validate_only: bool = False,
) -> TopicImage:
    """Create one topic. Raises the error that `create_topics` returns for it."""
    topic = NewTopic(
        name,
        partition_count=partition_count,
        replication_factor=replication_factor,
        configs=configs,
    )
    result = controller.create_topics([topic], validate_only=validate_only)[name]
    if isinstance(result, KafkaError):
        raise result
    return result
