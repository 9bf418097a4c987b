"""The way from this broker to the share coordinators: the leaders of `__share_group_state`."""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.automatic_settings import new_topic
from embedlog.broker.context import RequestContext
from embedlog.coordinator.placement import partition_of
from embedlog.runtime.pending import Pending
from embedlog.topic_names import SHARE_STATE_TOPIC
from wire.registry import stable_versions
from wire.schema import declaration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.broker.peers import Peers
    from embedlog.config import BrokerConfig
    from embedlog.controller.controller import Controller
    from embedlog.controller.metadata import MetadataImage
    from wire.schema import R, Request

    Handle = Callable[[RequestContext, Request[Any]], Any]

_TIMEOUT_MS = 30_000
NOBODY = -1


class ShareStateRoutes:
    """Implements `coordinator.share.state_client.ShareStateRoutes` for one broker.

    `handle` is `Broker.handle` of this broker. `metadata()` returns its present image, and
    `controller()` its present controller.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        controller: Callable[[], Controller],
        metadata: Callable[[], MetadataImage],
        reaches_controller: Callable[[], bool],
        peers: Peers | None,
        handle: Handle,
    ) -> None:
        self._config = config
        self._controller = controller
        self._metadata = metadata
        self._reaches_controller = reaches_controller
        self._peers = peers
        self._handle = handle

    def node_of(self, key: str) -> int:
        """See `state_client.ShareStateRoutes`."""
        topic = self._metadata().topics_by_name.get(SHARE_STATE_TOPIC)
        if topic is None:
            self._create_topic()
            topic = self._metadata().topics_by_name.get(SHARE_STATE_TOPIC)
            if topic is None:
                raise errors.CoordinatorNotAvailable()
        if self._peers is None:
            return self._config.node_id
        leader = topic.partitions[partition_of(key, len(topic.partitions))].leader
        if leader == NOBODY:
            raise errors.CoordinatorNotAvailable()
        return leader

    def send(self, node_id: int, request: Request[R]) -> R | Pending[R]:
        """See `state_client.ShareStateRoutes`."""
        if self._peers is not None and node_id != self._config.node_id:
            return self._peers.send(node_id, request, timeout_ms=_TIMEOUT_MS)
        api_key = declaration(type(request)).api
        assert api_key is not None, request
        answer: R | Pending[R] = self._handle(
            RequestContext(api_key, stable_versions(api_key)[1]), request
        )
        return answer

    def _create_topic(self) -> None:
        if self._reaches_controller():
            topic = new_topic(SHARE_STATE_TOPIC, self._metadata(), self._config)
            self._controller().create_topics([topic])
