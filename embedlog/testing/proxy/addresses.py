"""The answers that name brokers, with other addresses in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from wire.api_keys import ApiKey

AddressOf = Callable[[int, str, int], tuple[str, int]]
"""Returns the address for clients of a broker: number, host and port -> host and port."""

_WITH_ENDPOINTS = frozenset(
    {ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE}
)
"""Their answers name the brokers of new leaders (KIP-951)."""


def replace_addresses(api_key: int, answer: Any, address_of: AddressOf) -> None:
    """Put the addresses of `address_of` into an answer, in place."""
    for node_id, broker in _brokers(api_key, answer):
        if node_id >= 0 and broker.host:
            broker.host, broker.port = address_of(node_id, broker.host, broker.port)


def _brokers(api_key: int, answer: Any) -> Iterator[tuple[int, Any]]:
    """Yield the number of each broker in an answer, with the part that has its host and port."""
    if api_key in _WITH_ENDPOINTS:
        for endpoint in answer.node_endpoints:
            yield endpoint.node_id, endpoint
    elif api_key == ApiKey.FIND_COORDINATOR:
        for found in (answer, *answer.coordinators):
            yield found.node_id, found
    elif api_key == ApiKey.METADATA:
        for broker in answer.brokers:
            yield broker.node_id, broker
    elif api_key == ApiKey.DESCRIBE_CLUSTER:
        for broker in answer.brokers:
            yield broker.broker_id, broker
