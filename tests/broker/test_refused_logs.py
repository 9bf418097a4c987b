"""A disk that refuses the log of one topic: it and the other topics keep their settings."""

from __future__ import annotations

import errno

import pytest

import embedlog
from embedlog.cluster.cluster import Cluster
from embedlog.controller.controller import NewTopic
from embedlog.errors import KafkaError
from embedlog.testing import SimFiles, sim_runtime

ASKED = {
    "embedlog.durability": "fsync",
    "max.message.bytes": "1000",
    "cleanup.policy": "compact",
}


def _create(cluster: Cluster) -> None:
    made = cluster.broker().core.controller.create_topics(
        [NewTopic("a", partition_count=2), NewTopic("b", partition_count=2, configs=ASKED)]
    )
    assert not any(isinstance(each, KafkaError) for each in made.values()), made


def _check(cluster: Cluster) -> None:
    for number in range(2):
        config = cluster.broker().core.replica_manager.partition("b", number).log.config
        assert config.durability == "fsync"
        assert config.max_message_bytes == 1000
        assert config.compact
        assert (
            cluster.broker().core.replica_manager.partition("a", number).log.config.durability
            == "os"
        )
    with cluster.producer() as producer:
        assert producer.send("a", b"value").result().offset == 0
        assert producer.send("b", b"value", key=b"k").result().offset == 0
        with pytest.raises(embedlog.KafkaError):
            producer.send("b", b"value" * 1000, key=b"k").result()


@pytest.mark.slow
@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOSPC])
def test_settings_hold_whichever_call_is_refused(number: int) -> None:
    refused = 0
    call = 0
    while True:
        files = SimFiles()
        cluster = Cluster("data", runtime=sim_runtime(files=files), durability="os")
        first = files.calls + call
        files.fail(first, number)
        call += 1
        try:
            _create(cluster)
        except KafkaError:
            refused += 1  # refused by the metadata log: then there are no such topics
            cluster.close()
            continue
        is_over = files.calls <= first
        _check(cluster)
        cluster.close()
        with Cluster("data", runtime=sim_runtime(files=files), durability="os") as again:
            config = again.broker().core.replica_manager.partition("b", 1).log.config
            assert (config.durability, config.max_message_bytes) == ("fsync", 1000)
        if is_over:
            break
    assert call > 15
    assert refused < call / 2


def test_a_log_that_was_refused_is_made_when_it_is_next_asked_for() -> None:
    files = SimFiles()
    with Cluster("data", runtime=sim_runtime(files=files), durability="os") as cluster:
        open_file = files.open

        def refuse(path: str, *, create: bool = False) -> object:
            if create and path.startswith("data/b-"):
                raise OSError(errno.EMFILE, "Too many open files", path)
            return open_file(path, create=create)

        files.open = refuse  # type: ignore[method-assign,assignment]
        _create(cluster)
        with pytest.raises(embedlog.KafkaError, match="Too many open files"):
            cluster.broker().core.replica_manager.partition("b", 0)
        del files.open  # type: ignore[method-assign]
        _check(cluster)
