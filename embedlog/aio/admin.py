"""`Admin` for asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from embedlog.aio.calls import Calls, awaited
from embedlog.client.admin import admin as blocking
from embedlog.client.admin.results import ItemResults
from embedlog.runtime.forks import stays_in_parent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from embedlog.client.connect import Target


class Admin:
    """The admin client: the calls of `embedlog.Admin`, to be awaited.

    A cancelled call continues in its thread until it has an answer or times out. Later calls wait
    until it has ended.

    >>> import asyncio, embedlog, embedlog.aio
    >>> async def main(cluster):
    ...     async with embedlog.aio.Admin(cluster) as admin:
    ...         made = (await admin.create_topics({"events": 3})).check()
    ...         return sorted(await admin.list_topics())
    >>> with embedlog.open() as cluster:
    ...     asyncio.run(main(cluster))
    ['events']
    """

    def __init__(
        self, target: Target = None, config: Mapping[str, Any] | None = None, **settings: Any
    ) -> None:
        self.blocking = _Admin(target, config, **settings)
        """The synchronous client that makes the calls."""
        self._calls = Calls(
            self.blocking.scheduler, "admin", interrupt=_nothing, begin=_nothing, undo=_unseen
        )
        if self.blocking.in_process:
            stays_in_parent(self)

    # Topics
    create_topics = awaited(blocking.Admin.create_topics)
    delete_topics = awaited(blocking.Admin.delete_topics)
    list_topics = awaited(blocking.Admin.list_topics)
    describe_topics = awaited(blocking.Admin.describe_topics)
    create_partitions = awaited(blocking.Admin.create_partitions)

    # Settings
    describe_configs = awaited(blocking.Admin.describe_configs)
    incremental_alter_configs = awaited(blocking.Admin.incremental_alter_configs)
    alter_configs = awaited(blocking.Admin.alter_configs)

    # Records
    delete_records = awaited(blocking.Admin.delete_records)
    list_offsets = awaited(blocking.Admin.list_offsets)
    describe_producers = awaited(blocking.Admin.describe_producers)

    # Groups
    list_groups = awaited(blocking.Admin.list_groups)
    describe_groups = awaited(blocking.Admin.describe_groups)
    delete_groups = awaited(blocking.Admin.delete_groups)
    remove_members = awaited(blocking.Admin.remove_members)
    list_group_offsets = awaited(blocking.Admin.list_group_offsets)
    alter_group_offsets = awaited(blocking.Admin.alter_group_offsets)
    delete_group_offsets = awaited(blocking.Admin.delete_group_offsets)

    # Share groups
    describe_share_groups = awaited(blocking.Admin.describe_share_groups)
    list_share_group_offsets = awaited(blocking.Admin.list_share_group_offsets)
    alter_share_group_offsets = awaited(blocking.Admin.alter_share_group_offsets)
    delete_share_group_offsets = awaited(blocking.Admin.delete_share_group_offsets)

    # Transactions
    list_transactions = awaited(blocking.Admin.list_transactions)
    describe_transactions = awaited(blocking.Admin.describe_transactions)
    fence_producers = awaited(blocking.Admin.fence_producers)
    abort_transaction = awaited(blocking.Admin.abort_transaction)

    # Replicas
    elect_leaders = awaited(blocking.Admin.elect_leaders)
    alter_partition_reassignments = awaited(blocking.Admin.alter_partition_reassignments)
    list_partition_reassignments = awaited(blocking.Admin.list_partition_reassignments)
    alter_replica_log_dirs = awaited(blocking.Admin.alter_replica_log_dirs)
    describe_replica_log_dirs = awaited(blocking.Admin.describe_replica_log_dirs)

    # The cluster
    describe_cluster = awaited(blocking.Admin.describe_cluster)
    describe_quorum = awaited(blocking.Admin.describe_quorum)
    unregister_broker = awaited(blocking.Admin.unregister_broker)
    describe_log_dirs = awaited(blocking.Admin.describe_log_dirs)

    async def close(self) -> None:
        """Wait for the running call and free the resources. A second call waits for the first."""
        await self._calls.close(self.blocking.close)

    def __del__(self) -> None:
        calls: Calls | None = self.__dict__.get("_calls")
        if calls is not None:
            calls.abandon()

    async def __aenter__(self) -> Admin:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()


class _Admin(blocking.Admin):
    """The synchronous client, with access to its transport for this module."""

    @property
    def in_process(self) -> bool:
        return self._transport.in_process

    @property
    def scheduler(self) -> Any:
        return self._transport.runtime.scheduler


def _unseen(found: Any) -> None:
    """Mark the errors of a cancelled call as seen, so that nobody is warned about them.

    The caller cannot look at these results, because it has not got them.
    """
    if isinstance(found, ItemResults):
        found.keys()


def _nothing() -> None:
    """Do nothing: admin calls cannot be interrupted."""
