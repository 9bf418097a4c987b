"""Makes the topic that a job writes to, with all of its partitions."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import embedlog
from embedlog.errors import ConfigError, DirectoryLocked, InvalidPartitions, TopicAlreadyExists
from embedlog.runtime import real_runtime
from embedlog.spark.committer import guest_settings


def ensure_topic(
    path: str, topic: str, partitions: int, *, servers: str = "", config: Mapping[str, str]
) -> bool:
    """Make `topic` in the directory at `path`; return whether the topic was missing.

    If a process died while making the topic, some of its partitions lack a directory, and the sink
    would not count them: the missing ones are made. If another process has the directory open, the
    topic is made over the wire at `servers`.

    Raises:
        ConfigError: another process has the directory open, and `servers` is "".
        InvalidPartitions: the topic exists with another number of partitions.
        KafkaError: the topic cannot be made.
    """
    known = _count(path, topic)
    if known == partitions:
        return False
    try:
        _make(path, topic, partitions, config)
    except DirectoryLocked as error:
        if known == 0:
            if not servers:
                raise ConfigError(
                    f"the topic {topic!r} is not there, and its directory is open elsewhere: make "
                    "the topic first, or name the owner's address in kafka.bootstrap.servers. "
                    f"{error}"
                ) from error
            with embedlog.Admin(servers) as admin, suppress(TopicAlreadyExists):
                admin.create_topics([embedlog.NewTopic(topic, partitions, configs=config)]).check()
    found = _count(path, topic)
    if found != partitions:
        raise InvalidPartitions(f"the topic {topic!r} has {found} partitions, not {partitions}")
    return known == 0


def _make(path: str, topic: str, partitions: int, config: Mapping[str, str]) -> None:
    with embedlog.open(path, config=guest_settings(real_runtime(), path)) as cluster:
        with suppress(TopicAlreadyExists):
            cluster.create_topic(topic, partitions, config=config)
        broker = cluster.broker().core
        count = len(broker.image.topics_by_name[topic].partitions)
        for number in range(count):
            assert broker.replica_manager.partition(topic, number).log is not None, "it is opened"


def _count(path: str, topic: str) -> int:
    with embedlog.open_reader(path) as reader:
        return len(reader.partitions(topic))
