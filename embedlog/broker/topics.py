"""Functions for several APIs: addresses of brokers, automatic creation of topics, operations that
clients may do.
"""

from __future__ import annotations

from embedlog.broker.automatic_settings import new_topic
from embedlog.common import Value
from embedlog.controller import topic_names
from embedlog.controller.metadata import RESOURCE_BROKER, BrokerImage
from embedlog.errors import InvalidRequest, KafkaError
from embedlog.topic_names import INTERNAL_TOPICS, METADATA_TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.broker.peers import Peers

OPERATIONS_NOT_ASKED_FOR = -(2**31)
TOPIC_OPERATIONS = 3576
"""The bits of all operations on a topic: without an authorizer every client may do all of them."""
CLUSTER_OPERATIONS = 8096
GROUP_OPERATIONS = 3400


class BrokerEndpoint(Value):
    """A broker's address for clients of the listener that received the request."""

    node_id: int
    host: str
    port: int
    rack: str | None


def this_node(broker: Broker, context: RequestContext) -> BrokerEndpoint:
    """Return the endpoint of this broker, as the request's listener advertises it."""
    known = broker.image.brokers.get(broker.node_id)
    rack = None if known is None else known.rack
    return BrokerEndpoint(broker.node_id, context.advertised_host, context.advertised_port, rack)


def node(broker: Broker, context: RequestContext, node_id: int) -> BrokerEndpoint | None:
    """Return the endpoint of a live broker, or None if it is unknown or fenced."""
    if node_id == broker.node_id:
        return this_node(broker, context)
    known = broker.image.brokers.get(node_id)
    if broker.peers is None or known is None or known.is_fenced:
        return None
    return _node_at(broker.peers, context, known)


def _node_at(peers: Peers, context: RequestContext, known: BrokerImage) -> BrokerEndpoint | None:
    address = peers.address(known.node_id, context)
    return None if address is None else BrokerEndpoint(known.node_id, *address, known.rack)


def live_nodes(broker: Broker, context: RequestContext) -> list[BrokerEndpoint]:
    """Return the endpoint of every live broker, by number."""
    if broker.peers is None:
        return [] if broker.is_hidden else [this_node(broker, context)]
    found = [node(broker, context, node_id) for node_id in sorted(broker.image.brokers)]
    return [each for each in found if each is not None]


def departed_nodes(broker: Broker, context: RequestContext) -> list[BrokerEndpoint]:
    """Return the endpoints of brokers that left a moment ago.

    Kafka too names a broker until it has shut down, even if other brokers already lead its
    partitions. librdkafka depends on it: if the Metadata answer with a new leader does not name the
    former leader, the client may forget the new leader until it refreshes after a second.
    """
    peers = broker.peers
    if peers is None:
        return []
    found = [
        _node_at(peers, context, known)
        for node_id, known in sorted(broker.image.brokers.items())
        if known.is_fenced and peers.has_just_left(node_id)
    ]
    return [each for each in found if each is not None]


def check_node(broker: Broker, resource_type: int, resource_name: str) -> None:
    """Refuse the settings of another broker. Each broker takes its own and cluster-wide settings.

    Raises:
        InvalidRequest: the resource names another broker, or is not a number.
    """
    if resource_type != RESOURCE_BROKER or resource_name in ("", str(broker.node_id)):
        return
    digits = resource_name.removeprefix("-")
    if not (digits.isdigit() and digits.isascii()):
        raise InvalidRequest(f"Node id must be an integer, but it is: {resource_name}")
    if int(resource_name) != broker.node_id:
        raise InvalidRequest(
            f"Unexpected broker id, expected {broker.node_id}, but received {resource_name}"
        )


def leader_of(broker: Broker, topic: str, index: int) -> tuple[int, int]:
    """Return (leader, leader epoch) of a partition as this broker knows it, or (-1, -1)."""
    hosted = broker.replica_manager.partitions.get((topic, index))
    known = hosted or broker.image.partition(topic, index)
    return (-1, -1) if known is None else (known.leader, known.leader_epoch)


def create_missing_later(broker: Broker, names: Iterable[str]) -> None:
    """Create the missing topics of a client's request soon after its answer."""
    wanted = [name for name in names if topic_names.is_valid_name(name)]
    if wanted:
        broker.create_later(wanted, lambda due: create_missing(broker, due))


def create_missing(broker: Broker, names: Iterable[str]) -> None:
    """Create the missing topics of a client's request. Skip a topic that cannot be created."""
    if not broker.reaches_controller():
        return
    existing = broker.image.topics_by_name
    wanted = [
        new_topic(name, broker.image, broker.config)
        for name in names
        if name not in existing and name != METADATA_TOPIC and topic_names.is_valid_name(name)
    ]
    if wanted:
        broker.controller.create_topics(wanted)


def ensure_internal_topic(broker: Broker, name: str) -> bool:
    """Create an internal topic if it is missing. Return whether it exists."""
    assert name in INTERNAL_TOPICS, name
    if name in broker.image.topics_by_name:
        return True
    if not broker.reaches_controller():
        return False
    topic = new_topic(name, broker.image, broker.config)
    made = broker.controller.create_topics([topic])[name]
    # Another thread may have created it meanwhile.
    return not isinstance(made, KafkaError) or name in broker.image.topics_by_name
