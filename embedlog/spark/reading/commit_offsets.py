"""Commit a query's progress to a consumer group, so that lag tools see it."""

from __future__ import annotations

from collections.abc import Mapping

import embedlog
from embedlog.common import TopicPartition
from embedlog.errors import DirectoryLocked
from embedlog.spark.errors import IllegalArgument
from embedlog.spark.options import SourceOptions


def commit_offsets(options: SourceOptions, offsets: Mapping[TopicPartition, int]) -> None:
    """Store `offsets` for `kafka.group.id`: at `kafka.bootstrap.servers`, or in the directory.

    If another process has the directory open, its listener's address is needed.

    Raises:
        IllegalArgument: no group is named, or the directory is in use and no address is given.
        KafkaError: the group has active members, which own its offsets.
    """
    group = options.group_id
    if group is None:
        raise IllegalArgument("commitOffsets needs the option kafka.group.id")
    if options.bootstrap_servers is not None:
        with embedlog.Admin(options.bootstrap_servers) as admin:
            admin.alter_group_offsets(group, offsets).check()
        return
    assert options.path is not None, "the options were checked"
    try:
        cluster = embedlog.open(options.path)
    except DirectoryLocked as error:
        raise IllegalArgument(
            f"commitOffsets: {options.path} is open in another process; name its listener with "
            f"kafka.bootstrap.servers ({error})"
        ) from error
    with cluster, cluster.admin() as admin:
        admin.alter_group_offsets(group, offsets).check()
