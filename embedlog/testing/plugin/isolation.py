"""`Isolation`: tests that share a cluster do not see each other.

rollback      brokers that a test stopped or paused run again; topics and groups that it made
              are deleted; topics of the cluster's shape are made anew if it wrote to them
namespace     `kafka_session.name("orders")` ends with the number of the test
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from embedlog.testing.kafka import Kafka
from embedlog.testing.plugin.real import RealKafka
from embedlog.topic_names import OFFSETS_TOPIC


class Isolation:
    """Around each test that may use one cluster."""

    def __init__(
        self,
        kafka: Kafka | RealKafka,
        check: Callable[[int], list[str]],
        *,
        fixture: str | None = None,
    ) -> None:
        """`check(first)` closes the clients of the test, whose numbers begin with `first`, and
        returns the texts of leaks that fail the test. `fixture` gives the cluster to tests.
        """
        self.fixture = fixture
        """Tests without this fixture have nothing to do with the cluster. None: all tests use it,
        by its address."""
        self._kafka = kafka
        self._check = check
        self._is_begun = False
        self._number = 0
        self._client_count = 0
        self._topics: dict[str, int] = {}
        self._groups: set[str] = set()

    def begin(self) -> None:
        """Note the state before a test, at the first call since `end`."""
        if self._is_begun:
            return
        self._is_begun = True
        self._number += 1
        kafka = self._kafka
        if isinstance(kafka, Kafka):
            kafka.watch_leaks()
            kafka.namespace = f"-{self._number}"
            self._client_count = kafka.client_count
            self._topics = _topics(kafka)
            self._groups = _groups(kafka)

    def end(self) -> list[str]:
        """Return to the noted state, if a test began; return the texts of failing leaks."""
        if not self._is_begun:
            return []
        self._is_begun = False
        kafka = self._kafka
        if isinstance(kafka, RealKafka):
            kafka.clean()
            return []
        for node in kafka.brokers:
            if node.is_paused:
                node.resume()
            elif not node.is_running:
                node.start()
        texts = self._check(self._client_count)
        present = _topics(kafka)
        groups = _groups(kafka) - self._groups
        changed = [
            name
            for name in kafka.shape.topics
            if present.get(name, 0) != self._topics.get(name) == 0
        ]
        new = present.keys() - self._topics.keys()
        if new or changed or groups:
            with kafka.cluster.admin() as admin:
                # A group whose members still run stays: its consumer has leaked.
                _ = admin.delete_groups(sorted(groups)).errors if groups else ()
                doomed: Any = sorted({*new, *changed} & present.keys())
                _ = admin.delete_topics(doomed).errors if doomed else ()
        for name in changed:
            kafka.create_shaped_topic(name)
        return texts


def _topics(kafka: Kafka) -> dict[str, int]:
    """Return each topic, and the number of records that were ever written to it."""
    counts = dict.fromkeys(kafka.cluster.topics, 0)
    for node in kafka.brokers:
        if not node.is_running:
            continue
        for (topic, _), partition in list(node.core.replica_manager.partitions.items()):
            if topic in counts:
                counts[topic] = max(counts[topic], partition.log.log_end_offset)
    return counts


def _groups(kafka: Kafka) -> set[str]:
    running = [node for node in kafka.brokers if node.is_running]
    if not any(OFFSETS_TOPIC in node.core.image.topics_by_name for node in running):
        return set()  # no client has ever used a group
    with kafka.cluster.admin() as admin:
        found = admin.list_groups()
    _ = found.errors
    return {each.group_id for each in found.values.values()}
