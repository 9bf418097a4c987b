"""`Admin`: topics, settings, records, groups, transactions, replicas and the cluster.

    with cluster.admin() as admin:
        admin.create_topics([NewTopic("events", 3)]).check()

A call about several items returns one result or error for each: see `ItemResults`.
"""

from __future__ import annotations

from embedlog.client.admin.calls import AdminCalls
from embedlog.client.admin.cluster import ClusterAdmin
from embedlog.client.admin.configs import ConfigAdmin
from embedlog.client.admin.group_offsets import GroupOffsetAdmin
from embedlog.client.admin.groups import GroupAdmin
from embedlog.client.admin.records import RecordAdmin
from embedlog.client.admin.replicas import ReplicaAdmin
from embedlog.client.admin.share_groups import ShareGroupAdmin
from embedlog.client.admin.topics import TopicAdmin
from embedlog.client.admin.transactions import TransactionAdmin
from embedlog.client.connect import connect
from embedlog.client.parse_settings import parse
from embedlog.client.settings import ADMIN
from embedlog.runtime.locks import Rank, ranked_rlock
from embedlog.runtime.outer_call import outer_close

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from embedlog.client.connect import Target


class Admin(
    TopicAdmin,
    ConfigAdmin,
    RecordAdmin,
    GroupAdmin,
    GroupOffsetAdmin,
    ShareGroupAdmin,
    TransactionAdmin,
    ReplicaAdmin,
    ClusterAdmin,
):
    """The admin client. Thread-safe: a call waits for the calls of other threads.

    `target` is a cluster of this process or "host:port". The `timeout_ms` of a call defaults to
    default.api.timeout.ms; a call without an answer in that time raises TimedOut.

    >>> with embedlog.open() as cluster, embedlog.Admin(cluster) as admin:
    ...     made = admin.create_topics({"events": 3}).check()
    ...     len(admin.describe_topics(["events"])["events"].partitions)
    3
    """

    def __init__(
        self, target: Target = None, config: Mapping[str, Any] | None = None, **settings: Any
    ) -> None:
        self._turn = ranked_rlock(Rank.ADMIN)
        self._is_closed = False
        self._settings = parse(ADMIN, config, settings)
        self._transport = connect(self, target, self._settings)
        self._calls = AdminCalls(self._transport, self._settings)
        self._metadata = self._calls.metadata

    @outer_close(in_callbacks=False)
    def close(self) -> None:
        """Wait for the running call, then free the resources. A second call does nothing."""
        with self._turn:
            self._is_closed = True
            self._transport.close()

    def __repr__(self) -> str:
        return f"<Admin {self._settings['client.id']!r}{', closed' if self._is_closed else ''}>"

    def __enter__(self) -> Admin:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()
