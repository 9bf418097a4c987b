"""What coordinators see of the broker around them, as far as they need it; for the type checker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class PartitionFacts(Protocol):
    """One partition of the metadata."""

    @property
    def replicas(self) -> Sequence[int]: ...


class TopicFacts(Protocol):
    """One topic of the metadata."""

    @property
    def name(self) -> str: ...
    @property
    def topic_id(self) -> bytes: ...
    @property
    def partitions(self) -> Sequence[PartitionFacts]: ...


class BrokerFacts(Protocol):
    """One broker of the metadata."""

    @property
    def rack(self) -> str | None: ...


class Metadata(Protocol):
    """One immutable state of the cluster: `controller.metadata.MetadataImage`."""

    @property
    def topics_by_name(self) -> Mapping[str, TopicFacts]: ...
    @property
    def topics_by_id(self) -> Mapping[bytes, TopicFacts]: ...
    @property
    def brokers(self) -> Mapping[int, BrokerFacts]: ...
    @property
    def group_configs(self) -> Mapping[str, Mapping[str, str]]: ...
    @property
    def end_offset(self) -> int: ...


class MetadataChange(Protocol):
    """One change of the cluster: `controller.metadata.MetadataDelta`."""

    @property
    def image(self) -> Metadata: ...
    @property
    def created(self) -> Sequence[TopicFacts]: ...
    @property
    def deleted(self) -> Sequence[TopicFacts]: ...
    @property
    def partitions_added(self) -> Sequence[tuple[TopicFacts, range]]: ...
    @property
    def groups_changed(self) -> Sequence[str]: ...


class RequestContext(Protocol):
    """Who asks: `broker.context.RequestContext`."""

    @property
    def api_version(self) -> int: ...
    @property
    def client_id(self) -> str | None: ...
    @property
    def client_host(self) -> str: ...
    @property
    def in_process(self) -> bool: ...
