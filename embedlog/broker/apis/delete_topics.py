"""DeleteTopics (api key 20), versions 0-6: delete topics by name, from v6 on also by id.

v3 TOPIC_DELETION_DISABLED; before v3 it is INVALID_REQUEST. v4 flexible. v5 error messages. v6 ids.

With a timeout of zero or less nothing is looked up or deleted, and the answer is
REQUEST_TIMED_OUT for every topic that the request names once.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.error_texts import message_of
from embedlog.common import ZERO_UUID
from embedlog.errors import KafkaError
from wire.schemas.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.controller.controller import Controller
    from embedlog.controller.metadata import MetadataImage

_FIRST_WITH_DISABLED = 3


def handle(
    broker: Broker, context: RequestContext, request: DeleteTopicsRequest
) -> DeleteTopicsResponse:
    if not broker.config.delete_topic_enable:
        if context.api_version < _FIRST_WITH_DISABLED:
            raise errors.InvalidRequest("Topic deletion is disabled.")
        raise errors.TopicDeletionDisabled()
    plan = _Plan(broker.image)
    for topic in _asked(request):
        plan.add(topic)
    plan.drop_duplicates(is_late=request.timeout_ms <= 0)
    results = [_delete(broker.controller, topic_id) for topic_id in plan.wanted]
    return DeleteTopicsResponse(responses=[*plan.refused, *results])


def refused(request: DeleteTopicsRequest, _version: int, error: KafkaError) -> DeleteTopicsResponse:
    """Return the error in every topic."""
    return DeleteTopicsResponse(
        responses=[_failure(topic.name, topic.topic_id, error) for topic in _asked(request)]
    )


class _Plan:
    """The topics that a request names, and its entries that are unknown or repeated."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._names: dict[str, int] = {}
        self._ids: dict[bytes, int] = {}
        self.refused: list[DeletableTopicResult] = []
        self.wanted: dict[bytes, None] = {}
        """The ids of the topics to delete."""

    def add(self, topic: DeleteTopicState) -> None:
        if topic.name is None and topic.topic_id == ZERO_UUID:
            self._refuse(topic, "Neither topic name nor id were specified.")
        elif topic.name is not None and topic.topic_id != ZERO_UUID:
            self._refuse(topic, "You may not specify both topic name and topic id.")
        elif topic.name is not None:
            self._names[topic.name] = self._names.get(topic.name, 0) + 1
        else:
            self._ids[topic.topic_id] = self._ids.get(topic.topic_id, 0) + 1

    def drop_duplicates(self, *, is_late: bool) -> None:
        """Split the entries into `refused` and `wanted`; a repeated topic is refused, and every
        topic if the request `is_late`.

        Requires: every entry was added.
        """
        for topic_id, count in self._ids.items():
            if count > 1:
                self._refuse(DeleteTopicState(topic_id=topic_id), "Duplicate topic id.")
            elif is_late:
                self.refused.append(_failure(None, topic_id, errors.RequestTimedOut()))
            elif topic_id in self._image.topics_by_id:
                self.wanted[topic_id] = None
            else:
                self.refused.append(_failure(None, topic_id, errors.UnknownTopicId()))
        for name, count in self._names.items():
            topic = self._image.topics_by_name.get(name)
            if count > 1:
                self._refuse(DeleteTopicState(name=name), "Duplicate topic name.")
            elif is_late:
                self.refused.append(_failure(name, ZERO_UUID, errors.RequestTimedOut()))
            elif topic is None:
                error = errors.UnknownTopicOrPartition()
                self.refused.append(_failure(name, ZERO_UUID, error))
            elif topic.topic_id in self._ids:
                self.wanted.pop(topic.topic_id, None)
                self._refuse(
                    DeleteTopicState(name=name, topic_id=topic.topic_id),
                    "The provided topic name maps to an ID that was already supplied.",
                )
            else:
                self.wanted[topic.topic_id] = None

    def _refuse(self, topic: DeleteTopicState, message: str) -> None:
        error = errors.InvalidRequest(message)
        self.refused.append(_failure(topic.name, topic.topic_id, error))


def _asked(request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    """Return the topics in the form of v6; before it a request has only a list of names."""
    return [*request.topics, *(DeleteTopicState(name=name) for name in request.topic_names)]


def _delete(controller: Controller, topic_id: bytes) -> DeletableTopicResult:
    try:
        topic = controller.delete_topic(topic_id)
    except KafkaError as error:
        return _failure(None, topic_id, error)
    return DeletableTopicResult(name=topic.name, topic_id=topic_id)


def _failure(name: str | None, topic_id: bytes, error: KafkaError) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=error.code, error_message=message_of(error)
    )
