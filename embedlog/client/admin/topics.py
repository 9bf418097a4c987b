"""Admin calls about topics."""

from __future__ import annotations

from embedlog.client import arguments
from embedlog.client.admin.new_topics import CreatedTopic, NewTopic, creatable, created
from embedlog.client.admin.part import AdminPart, in_turn
from embedlog.client.admin.results import ItemResults, results_of
from embedlog.errors import KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from embedlog.client.metadata import TopicInfo
    from wire.schemas.delete_topics import DeleteTopicState

_DELETES_BY_ID_FROM = 6
_ID_SIZE = 16


class TopicAdmin(AdminPart):
    """Creates, describes and deletes topics, and adds partitions."""

    @in_turn
    def create_topics(
        self,
        topics: Iterable[NewTopic | str] | dict[str, int],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> ItemResults[str, CreatedTopic]:
        """Create topics: a list of `NewTopic` or names, or a dict of names and partition counts.

        A topic that is given only by name gets the broker's defaults.
        """
        from wire.schemas.create_topics import CreateTopicsRequest

        request = CreateTopicsRequest(
            topics=[creatable(each) for each in _new_topics(topics)],
            timeout_ms=self._calls.timeout(timeout_ms),
            validate_only=validate_only,
        )
        response = self._calls.to_controller(request, timeout_ms)
        results: ItemResults[str, CreatedTopic] = ItemResults()
        for made in response.topics:
            try:
                results.values[made.name] = created(made)
            except KafkaError as error:
                results.failures[made.name] = error
        return results

    @in_turn
    def delete_topics(
        self, topics: Iterable[str | bytes], *, timeout_ms: int | None = None
    ) -> ItemResults[str | bytes, None]:
        """Delete topics with all their records, by name or by id (16 bytes)."""
        from wire.schemas.delete_topics import DeleteTopicsRequest, DeleteTopicState

        what = "topic names or ids"
        wanted = arguments.names(topics, "delete_topics", "topics", what=what, kinds=(str, bytes))
        request = DeleteTopicsRequest(timeout_ms=self._calls.timeout(timeout_ms))
        if self._calls.newest_version(DeleteTopicsRequest, timeout_ms) >= _DELETES_BY_ID_FROM:
            request.topics = [
                DeleteTopicState(name=each) if isinstance(each, str) else _by_id(each)
                for each in wanted
            ]
        else:
            request.topic_names = [each for each in wanted if isinstance(each, str)]
        response = self._calls.to_controller(request, timeout_ms)
        results: ItemResults[str | bytes, None] = ItemResults()
        for gone in response.responses:
            item = gone.topic_id if gone.topic_id in wanted else (gone.name or gone.topic_id)
            results.put(item, None, gone.error_code, gone.error_message)
        return results

    @in_turn
    def list_topics(
        self, *, include_internal: bool = False, timeout_ms: int | None = None
    ) -> dict[str, TopicInfo]:
        """Return the cluster's topics by name; internal topics only with `include_internal`."""
        self._calls.describe_all(timeout_ms)
        topics = self._metadata.topics
        return {
            name: info for name, info in topics.items() if include_internal or not info.is_internal
        }

    @in_turn
    def describe_topics(
        self, topics: Iterable[str], *, timeout_ms: int | None = None
    ) -> ItemResults[str, TopicInfo]:
        """Return partitions, leaders and replicas of topics. Never creates a topic."""
        names = arguments.names(topics, "describe_topics", "topics")
        self._calls.until_described(names, self._calls.timeout(timeout_ms))
        topics, errors = self._metadata.topics, self._metadata.errors
        return results_of({name: topics.get(name) or errors[name] for name in names})

    @in_turn
    def create_partitions(
        self,
        counts: Mapping[str, int],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> ItemResults[str, None]:
        """Add partitions to topics, up to the new total in `counts` for each topic."""
        from wire.schemas.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic

        arguments.mapping(counts, "create_partitions", "counts", "topic's name: partition count")
        arguments.names(counts, "create_partitions", "counts")
        request = CreatePartitionsRequest(
            topics=[
                CreatePartitionsTopic(
                    name=name,
                    count=arguments.partition_count(count, "create_partitions", f"counts: {name}"),
                    assignments=None,
                )
                for name, count in counts.items()
            ],
            timeout_ms=self._calls.timeout(timeout_ms),
            validate_only=validate_only,
        )
        results: ItemResults[str, None] = ItemResults()
        for answer in self._calls.to_controller(request, timeout_ms).results:
            results.put(answer.name, None, answer.error_code, answer.error_message)
        self._metadata.request_update()
        return results


def _new_topics(topics: Any) -> list[NewTopic]:
    what = "topic names or NewTopic"
    wanted = arguments.names(topics, "create_topics", "topics", what=what, kinds=(str, NewTopic))
    if isinstance(topics, dict):
        return [NewTopic(name, topics[name]) for name in wanted]
    return [NewTopic(each) if isinstance(each, str) else each for each in wanted]


def _by_id(topic_id: bytes) -> DeleteTopicState:
    from wire.schemas.delete_topics import DeleteTopicState

    if len(topic_id) != _ID_SIZE:
        raise ValueError(
            f"delete_topics(topics): the id {topic_id!r} has {len(topic_id)} bytes, not "
            f"{_ID_SIZE}; a topic's name is a str"
        )
    return DeleteTopicState(name=None, topic_id=topic_id)
