"""The chain of interceptors: their order, their inputs, and their exceptions."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

import embedlog
import embedlog.aio
from embedlog.client.interceptors import InterceptorChain


class Adds:
    def __init__(self, letter: str, heard: list[Any] | None = None) -> None:
        self.letter = letter
        self.heard = heard if heard is not None else []

    def on_send(self, record: str) -> str:
        return record + self.letter

    def on_acknowledgement(self, metadata: Any, error: Any) -> None:
        self.heard.append((self.letter, metadata, error))

    def close(self) -> None:
        self.heard.append((self.letter, "closed"))


class Raises(Adds):
    def on_send(self, record: str) -> str:
        raise ValueError(f"will not have {record}")

    def on_acknowledgement(self, metadata: Any, error: Any) -> None:
        raise ValueError("will not hear")

    def close(self) -> None:
        raise ValueError("will not close")


class Deaf:
    """An interceptor without methods."""


def test_each_gets_what_the_one_before_it_made() -> None:
    chain = InterceptorChain([Adds("a"), Deaf, Adds("b")], {})
    assert chain.transform("on_send", "-") == "-ab"
    assert len(chain) == 3


def test_all_are_told_in_order_and_closed_in_order() -> None:
    heard: list[Any] = []
    chain = InterceptorChain([Adds("a", heard), Adds("b", heard)], {})
    chain.tell("on_acknowledgement", "where", None)
    chain.close()
    assert heard == [("a", "where", None), ("b", "where", None), ("a", "closed"), ("b", "closed")]


def test_what_one_raises_is_logged_and_the_last_good_value_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[Any] = []
    chain = InterceptorChain([Adds("a"), Raises("x"), Adds("b", heard)], {})
    with caplog.at_level(logging.WARNING, "embedlog.client"):
        assert chain.transform("on_send", "-") == "-ab"
        chain.tell("on_acknowledgement", "where", None)
        chain.close()
    assert [record.getMessage() for record in caplog.records] == [
        "Raises.on_send raised and was ignored",
        "Raises.on_acknowledgement raised and was ignored",
        "Raises.close raised and was ignored",
    ]
    assert heard == [("b", "where", None), ("b", "closed")]


def test_an_interrupt_is_no_error_of_the_interceptor() -> None:
    class Interrupted:
        def on_send(self, record: str) -> str:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        InterceptorChain([Interrupted], {}).transform("on_send", "-")


def test_a_class_is_called_and_configured_with_the_clients_settings() -> None:
    seen: list[Any] = []

    class Configured:
        def configure(self, settings: Any) -> None:
            seen.append(settings["client.id"])

    InterceptorChain([Configured, Configured()], {"client.id": "me"})
    assert seen == ["me", "me"]


def test_an_interceptor_that_cannot_be_made_stops_the_client() -> None:
    class Broken:
        def configure(self, settings: Any) -> None:
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        InterceptorChain([Broken], {})


class Forgets:
    """Returns nothing, though it should."""

    def on_send(self, record: Any) -> None: ...

    def on_consume(self, records: Any) -> None: ...


class Refuses:
    def on_send(self, record: Any) -> Any:
        raise ValueError("no")

    def on_acknowledgement(self, metadata: Any, error: Any) -> None:
        raise ValueError("no")

    def on_consume(self, records: Any) -> Any:
        raise ValueError("no")

    def on_commit(self, offsets: Any) -> None:
        raise ValueError("no")


@pytest.fixture(params=["in process", "over TCP"])
def target(request: pytest.FixtureRequest) -> Any:
    with embedlog.open() as cluster:
        if request.param == "in process":
            yield cluster
        else:
            yield cluster.listen("127.0.0.1", 0).address


def _read(target: Any, count: int, **settings: Any) -> list[Any]:
    with embedlog.Consumer(target, auto_offset_reset="earliest", **settings) as consumer:
        consumer.assign([("t", 0)])
        found: list[Any] = []
        while len(found) < count:
            found += [record.value for record in consumer.poll(1000)]
    return found


@pytest.mark.parametrize("interceptor", [Forgets, Refuses])
def test_records_go_on_unchanged_when_an_interceptor_returns_nothing_or_raises(
    target: Any, interceptor: type, caplog: pytest.LogCaptureFixture
) -> None:
    with embedlog.Producer(target, interceptor_classes=[interceptor]) as producer:
        assert producer.send("t", b"one", headers=[("h", b"1")]).result().offset == 0
        producer.send_batch("t", [b"two", b"three"], partition=0).result()
    verb = "returned None instead of ProducerRecord" if interceptor is Forgets else "raised"
    name = interceptor.__name__
    assert f"{name}.on_send {verb} and was ignored, for a record of t" in caplog.text
    assert f"{name}.on_send {verb} and was ignored, for a record of t-0" in caplog.text
    if interceptor is Refuses:
        acknowledged = "Refuses.on_acknowledgement raised and was ignored, for a record of t-0 at"
        assert f"{acknowledged} offset 0" in caplog.text
        assert f"{acknowledged} offset 2" in caplog.text
    caplog.clear()
    assert _read(target, 3, interceptor_classes=[interceptor]) == [b"one", b"two", b"three"]
    verb = "returned None instead of ConsumerRecords" if interceptor is Forgets else "raised"
    expected = f"{name}.on_consume {verb} and was ignored, for records of t-0 from offset 0"
    assert expected in caplog.text


def test_the_clients_for_asyncio_do_the_same(caplog: pytest.LogCaptureFixture) -> None:
    async def main(cluster: Any) -> None:
        async with embedlog.aio.Producer(cluster, interceptor_classes=[Forgets]) as producer:
            await producer.send("t", b"one")
            await producer.send_batch("t", [b"two"])
        async with embedlog.aio.Consumer(cluster, interceptor_classes=[Forgets]) as consumer:
            await consumer.assign([("t", 0)])
            await consumer.seek_to_beginning()
            assert [record.value for record in await consumer.poll(1000)] == [b"one", b"two"]

    with embedlog.open() as cluster:
        asyncio.run(main(cluster))
    assert "Forgets.on_send returned None" in caplog.text
    assert "Forgets.on_consume returned None" in caplog.text


def test_on_commit_that_raises_is_named_with_the_partitions(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with (
        embedlog.open() as cluster,
        cluster.consumer(group_id="g", interceptor_classes=[Refuses]) as consumer,
    ):
        cluster.create_topic("t")
        consumer.assign([("t", 0)])
        consumer.commit({("t", 0): 0})
    assert "Refuses.on_commit raised and was ignored, for offsets of t-0" in caplog.text


@pytest.mark.parametrize("wrong", [5, "text", (1, 2), b"v"])
def test_what_is_no_record_is_ignored(wrong: Any, caplog: pytest.LogCaptureFixture) -> None:
    class Wrong:
        def on_send(self, record: Any) -> Any:
            return wrong

        def on_consume(self, records: Any) -> Any:
            return wrong

    with embedlog.open() as cluster:
        with cluster.producer(interceptor_classes=[Wrong]) as producer:
            producer.send("t", b"v").result()
        assert _read(cluster, 1, interceptor_classes=[Wrong]) == [b"v"]
    assert f"Wrong.on_send returned a {type(wrong).__name__} instead of" in caplog.text


def test_a_short_record_is_no_record() -> None:
    class Short:
        def on_send(self, record: Any) -> Any:
            return embedlog.ProducerRecord(("t", b"w"))  # type: ignore[arg-type]

    with embedlog.open() as cluster, cluster.producer(interceptor_classes=[Short]) as producer:
        producer.send("t", b"v").result()
        assert _read(cluster, 1) == [b"v"]


def test_on_consume_may_return_a_list_of_the_records_that_pass() -> None:
    class Odd:
        def on_consume(self, records: Any) -> Any:
            return [record for record in records if record.offset % 2]

    with embedlog.open() as cluster:
        with cluster.producer() as producer:
            producer.send_batch("t", [b"0", b"1", b"2", b"3"]).result()
        with cluster.consumer(interceptor_classes=[Odd]) as consumer:
            consumer.assign([("t", 0)])
            consumer.seek_to_beginning()
            found = consumer.poll(1000)
            assert [record.value for record in found] == [b"1", b"3"]
            assert found.partitions() == [embedlog.TopicPartition("t", 0)]
