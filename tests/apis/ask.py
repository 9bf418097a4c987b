"""Requests to a broker in tests: request and response go through the bytes of their version."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import embedlog
import wire
from embedlog.broker import dispatch
from embedlog.broker.context import RequestContext
from embedlog.cluster.cluster import Cluster
from wire.registry import response_class
from wire.schema import declaration

PORT = 9092


@contextmanager
def opened(**settings: Any) -> Iterator[Cluster]:
    """A cluster in memory with these settings, and Kafka's answers about topics that it creates."""
    settings.setdefault("embedlog_auto_create_topics_await", False)
    with embedlog.open(**settings) as cluster:
        yield cluster


def ask(cluster: Cluster, request: Any, version: int) -> Any:
    """Return the response that a client of this version would decode."""
    declared = declaration(type(request))
    assert declared.api is not None
    first, last = dispatch.versions(cluster.config)[declared.api]
    assert first <= version <= last, (declared.name, version)
    received = wire.decode(type(request), version, wire.encode(request, version))
    context = RequestContext(
        declared.api, version, advertised_host="127.0.0.1", advertised_port=PORT
    )
    answer = cluster.broker().core.handle(context, received)
    kind = response_class(declared.api)
    return wire.decode(kind, version, wire.encode(answer, version))


def versions(request_class: type[Any]) -> range:
    """Every version of the request that the broker serves."""
    api = declaration(request_class).api
    assert api is not None
    first, last = dispatch.VERSIONS[api]
    return range(first, last + 1)
