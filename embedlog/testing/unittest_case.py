"""`KafkaTestCase`: a cluster for each test of a class of `unittest`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar
from warnings import warn

from embedlog.errors import ConfigError
from embedlog.runtime.environment import set_for_now
from embedlog.testing.kafka import Kafka

_SCOPES = ("test", "class")


class KafkaTestCase:
    """A mixin for `unittest.TestCase` and `unittest.IsolatedAsyncioTestCase`.

        class TestOrders(KafkaTestCase, unittest.TestCase):
            kafka_shape = {"topics": {"orders": 6}}

            def test_orders(self):
                my_service(self.kafka.bootstrap_servers)

    The cluster opens at the first use of `self.kafka`, and closes after the test and its clean-ups.
    """

    kafka_shape: ClassVar[Mapping[str, Any]] = {}
    """The arguments of `Shape`."""
    kafka_scope: ClassVar[str] = "test"
    """"test" for a fresh cluster in each test, or "class" for one cluster."""
    kafka_env: ClassVar[Any] = ()
    """Environment variables that lead to the cluster: as `env` of the marker `kafka` of pytest.
    The cluster then opens before each test."""

    addCleanup: Callable[..., Any]
    addClassCleanup: ClassVar[Callable[..., Any]]

    def setUp(self) -> None:  # noqa: N802  # unittest's name
        """Open the cluster if environment variables have to lead to it."""
        super().setUp()  # type: ignore[misc]
        if self.kafka_env:
            from embedlog.testing.plugin.environment import variables

            named = variables(self.kafka_env, self.kafka.bootstrap_servers)
            self.addCleanup(set_for_now(named))

    @property
    def kafka(self) -> Kafka:
        """The cluster of this test, or of the class."""
        if self.kafka_scope not in _SCOPES:
            raise ConfigError(f"kafka_scope={self.kafka_scope!r}: expected test or class")
        owner: Any = type(self) if self.kafka_scope == "class" else self
        made: Kafka | None = vars(owner).get("_kafka")
        if made is None:
            made = owner._kafka = Kafka(**self.kafka_shape)
            made.watch_leaks()
            add = type(self).addClassCleanup if owner is not self else self.addCleanup
            add(_close, owner, made)
        return made


def _close(owner: Any, kafka: Kafka) -> None:
    """Close a cluster at the end of its owner, and fail for errors of its brokers."""
    from embedlog.testing.leaks import LeakWarning

    del owner._kafka
    with kafka:
        leaks = kafka.leaks("transactions")
        kafka.close_clients()
        leaks += kafka.leaks("connections", "errors")
    for each in leaks:
        if each.kind == "errors":
            raise AssertionError(f"an exception in a broker: {each.what}")
        warn(f"the test left behind {each}", LeakWarning, stacklevel=2)
