"""`RealKafka`: a real cluster in place of the fake, for `--kafka=HOST:PORT`.

The same tests run against it. A test that needs the fake is skipped, and the reason names the need.
Topics that exist are never touched: only the test's own topics are deleted after it.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self, TypeVar

import pytest

from embedlog.errors import ConfigError, EmbedlogError, KafkaError, TopicAlreadyExists
from embedlog.runtime.randomness import Random
from embedlog.testing.clients.config import client_config
from embedlog.testing.kafka import Kafka
from embedlog.testing.names import hint

if TYPE_CHECKING:
    from embedlog.client.admin.admin import Admin
    from embedlog.client.admin.new_topics import CreatedTopic
    from embedlog.client.consumer.consumer import Consumer
    from embedlog.client.producer.producer import Producer
    from embedlog.testing.plugin.marks import Marked

T = TypeVar("T")

_ANSWERS_MS = 10_000
_UNREACHABLE: dict[str, str] = {}
"""Address -> the message for every test."""

_NEEDS = {
    "broker": "brokers that stop, fail and pause",
    "brokers": "brokers that stop, fail and pause",
    "clock": "a clock that the test moves",
    "cluster": "a cluster in the process of the test",
    "controller": "a controller that stops",
    "fault": "faults",
    "fork": "snapshots",
    "network": "links that break",
    "partition": "leaders that move",
    "registry": "a schema registry in the process",
    "restore": "snapshots",
    "snapshot": "snapshots",
}
"""Attribute of `Kafka` -> what a test wants with it."""


class RealKafka:
    """The part of `Kafka` that a real cluster can do."""

    def __init__(self, address: str, marked: Marked) -> None:
        """Connect, and create the topics of the shape.

        Skips the test if the shape needs the fake.
        """
        self._ends = ExitStack()
        self._made: list[str] = []
        self.bootstrap_servers = address
        self.failure_providers: list[Any] = []
        self.namespace = f"-{Random().below(1 << 48):012x}"
        self._skip_for(marked)
        self._admin = self.admin(request_timeout_ms=10_000)
        try:
            self._check_brokers(marked.shape.brokers)
            self._ends.callback(self.clean)
            for name, given in marked.shape.topics.items():
                arguments = {"partitions": given} if isinstance(given, int) else dict(given)
                self.create_topic(name, **arguments)
        except BaseException:
            self.close()
            raise

    def _skip_for(self, marked: Marked) -> None:
        for name in ("config", "clock", "path", "racks", "cluster_id"):
            if marked.given.get(name) not in (None, {}, (), "real"):
                pytest.skip(f"needs the fake: {name}={marked.given[name]!r}")

    def _check_brokers(self, wanted: int) -> None:
        address = self.bootstrap_servers
        if address in _UNREACHABLE:  # do not wait again for each test
            pytest.fail(_UNREACHABLE[address], pytrace=False)
        try:
            found = len(self._admin.describe_cluster(timeout_ms=_ANSWERS_MS).nodes)
        except (EmbedlogError, OSError) as error:
            _UNREACHABLE[address] = f"--kafka={address}: no cluster answers: {error}"
            pytest.fail(_UNREACHABLE[address], pytrace=False)
        if found < wanted:
            pytest.skip(f"needs {wanted} brokers, and {self.bootstrap_servers} has {found}")

    # As in `Kafka`

    def client_config(
        self,
        client: str,
        role: str | None = None,
        *,
        group_id: str | None = None,
        **settings: Any,
    ) -> dict[str, Any]:
        """Return settings for a foreign client: see `Kafka.client_config`."""
        addresses = self.bootstrap_servers
        return client_config(client, addresses, role, group_id=group_id, **settings)

    def closing(self, client: T) -> T:
        """Return a foreign client, which `close` ends: see `Kafka.closing`."""
        from embedlog.testing.clients.endings import ending

        self._ends.callback(ending(client))
        return client

    def name(self, word: str) -> str:
        """Return a name that no other test and no other run has."""
        return word + self.namespace

    def producer(self, **settings: Any) -> Producer:
        """Return a producer, which `close` closes."""
        from embedlog.client.producer.producer import Producer

        return self._ends.enter_context(Producer(self.bootstrap_servers, **settings))

    def consumer(self, **settings: Any) -> Consumer:
        """Return a consumer, which `close` closes."""
        from embedlog.client.consumer.consumer import Consumer

        return self._ends.enter_context(Consumer(self.bootstrap_servers, **settings))

    def admin(self, **settings: Any) -> Admin:
        """Return an admin client, which `close` closes."""
        from embedlog.client.admin.admin import Admin

        return self._ends.enter_context(Admin(self.bootstrap_servers, **settings))

    def create_topic(self, name: str, partitions: int = -1, **settings: Any) -> CreatedTopic:
        """Create a topic, which is deleted after the test.

        Raises:
            ConfigError: the topic exists, and may belong to somebody.
        """
        from embedlog.client.admin.new_topics import NewTopic

        replicas = settings.pop("replication_factor", -1)
        topic = NewTopic(name, partitions, replicas, configs=settings.pop("config", {}) or {})
        if settings:
            raise ConfigError(f"create_topic got {', '.join(settings)}, which it does not know")
        try:
            made: CreatedTopic = self._admin.create_topics([topic])[name]
        except TopicAlreadyExists:
            raise ConfigError(
                f"topic {name!r} exists at {self.bootstrap_servers}, and a test may not delete "
                f"it; use kafka.name({name!r}) for a private name, which tests beside it need as "
                "well, or an empty cluster"
            ) from None
        self._made.append(name)
        return made

    def on_failure(self, provider: Any) -> None:
        """Show the result of `provider()` in the report: see `Kafka.on_failure`."""
        self.failure_providers.append(provider)

    def clean(self) -> None:
        """Delete the topics that the test has created, also those with private names."""
        made, self._made = self._made, []
        private = [name for name in self._admin.list_topics() if name.endswith(self.namespace)]
        wanted = sorted({*made, *private})
        if wanted:
            failures = self._admin.delete_topics(wanted).errors
            for name, error in failures.items():
                _warn_undeleted(str(name), error)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in _NEEDS:
            pytest.skip(f"needs the fake: {_NEEDS[name]} (kafka.{name})")
        if hasattr(Kafka, name):
            pytest.skip(f"needs the fake: kafka.{name}")
        known = [each for each in dir(Kafka) if not each.startswith("_")]
        raise AttributeError(f"Kafka has no attribute {name!r}; {hint(name, known)}")

    # Life

    def close(self) -> None:
        """Close the clients of the test, and delete its topics. Idempotent."""
        self._ends.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<RealKafka at {self.bootstrap_servers}>"


def _warn_undeleted(name: str, error: KafkaError) -> None:
    from warnings import warn

    from embedlog.testing.leaks import LeakWarning

    warn(f"topic {name!r} of the test could not be deleted: {error}", LeakWarning, stacklevel=3)
