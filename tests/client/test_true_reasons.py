"""Clients name the true reason of a wait: at once where it is final, else in a rare warning."""

from __future__ import annotations

import logging
import re
import socket
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import embedlog
from embedlog import OffsetSpec, TopicPartition, errors
from embedlog.client.rare_warnings import INTERVAL_MS, RareWarnings
from embedlog.cluster.cluster import Cluster
from embedlog.testing import sim_runtime

MISSING = TopicPartition("t", 9)


def warned(caplog: pytest.LogCaptureFixture, text: str) -> list[str]:
    found = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    return [each for each in found if re.search(text, each)]


# Warnings


def closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("kind", ["consumer", "producer", "admin"])
def test_an_address_where_nobody_listens_is_named(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    address = closed_port()
    if kind == "consumer":
        with embedlog.Consumer(address, group_id="g") as consumer:
            consumer.subscribe(["t"])
            consumer.poll(300)
    elif kind == "producer":
        with embedlog.Producer(address, max_block_ms=300) as producer:
            assert producer.send("t", b"v").exception() is not None
    else:
        with embedlog.Admin(address) as admin, pytest.raises(errors.TimedOut):
            admin.list_topics(timeout_ms=300)
    (text,) = warned(caplog, re.escape(address))
    assert "refused" in text


def test_a_listener_that_is_not_kafkas_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with embedlog.Consumer(address) as consumer:
            consumer.assign([("t", 0)])
            consumer.poll(1)
            accepted, _ = server.accept()
            accepted.close()
            consumer.poll(300)
    assert warned(caplog, f"{address}.*is it a Kafka listener")


def consumers(simulated: Cluster, **settings: Any) -> embedlog.Consumer:
    return simulated.consumer(allow_auto_create_topics=False, **settings)


@pytest.fixture
def simulated() -> Any:
    cluster = Cluster(None, {"auto.create.topics.enable": False}, runtime=sim_runtime(seed=5))
    cluster.create_topic("t", 2)
    yield cluster
    cluster.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_subscribed_topic_that_is_missing_is_named_once_a_minute(
    simulated: Cluster, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    with consumers(simulated, group_id="g", group_protocol=protocol) as consumer:
        consumer.subscribe(["oders"])
        consumer.poll(2_000)
        assert len(warned(caplog, "'oders'.*UnknownTopicOrPartition")) == 1
        consumer.poll(50_000)
        assert len(warned(caplog, "'oders'")) == 1
        consumer.poll(20_000)
        assert len(warned(caplog, "'oders'")) == 2


def test_an_assigned_topic_that_is_missing_is_named(
    simulated: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    with consumers(simulated) as consumer:
        consumer.assign([("oders", 0)])
        consumer.poll(2_000)
    assert len(warned(caplog, "'oders'")) == 1


@pytest.mark.parametrize("seeks", [False, True])
def test_an_assigned_partition_that_is_missing_is_named(
    simulated: Cluster, caplog: pytest.LogCaptureFixture, seeks: bool
) -> None:
    with consumers(simulated) as consumer:
        consumer.assign([("t", 7)])
        if seeks:
            consumer.seek(("t", 7), 0)
        consumer.poll(2_000)
        consumer.poll(2_000)
    assert len(warned(caplog, "no partition t-7: topic 't' has 2 partitions")) == 1


def test_a_pattern_that_matches_nothing_is_named(
    simulated: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    with consumers(simulated, group_id="g", metadata_max_age_ms=1_000) as consumer:
        consumer.subscribe(pattern="oders-.*")
        for _ in range(4):
            consumer.poll(1_000)
    assert len(warned(caplog, "pattern 'oders-")) == 1


def test_a_topic_that_appears_soon_is_no_news(
    simulated: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    with consumers(simulated, group_id="g", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["soon"])
        consumer.poll(100)
        simulated.create_topic("soon")
        with simulated.producer() as producer:
            producer.append("soon", b"v")
        while not consumer.poll(1_000):
            pass
    assert not warned(caplog, "soon")


def test_a_group_without_a_coordinator_is_named(caplog: pytest.LogCaptureFixture) -> None:
    from embedlog.broker.broker import Broker
    from wire.error_codes import ErrorCode
    from wire.schemas.find_coordinator import (
        Coordinator,
        FindCoordinatorRequest,
        FindCoordinatorResponse,
    )

    cluster = Cluster(None, runtime=sim_runtime(seed=5))
    cluster.create_topic("t")
    core: Broker = cluster.broker().core

    def refuse(_context: Any, request: Any) -> Any:
        if not isinstance(request, FindCoordinatorRequest):
            return None
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        return FindCoordinatorResponse(coordinators=[Coordinator(key="g", error_code=code)])

    core.interceptor = refuse
    with cluster.consumer(group_id="g") as consumer:
        consumer.subscribe(["t"])
        consumer.poll(4_000)
        assert not warned(caplog, "coordinator")
        consumer.poll(4_000)
        assert len(warned(caplog, "coordinator of group 'g' is not found")) == 1
        core.interceptor = None
    cluster.close()


def test_warnings_are_rare(caplog: pytest.LogCaptureFixture) -> None:
    warnings = RareWarnings()
    for now_ms in (0, 1, INTERVAL_MS - 1, INTERVAL_MS):
        warnings.warn("a", now_ms, "told at %d", now_ms)
    assert warned(caplog, "told") == ["told at 0", f"told at {INTERVAL_MS}"]
    warnings.warn_if_lasting("b", 0, "lasting")
    warnings.warn_if_lasting("b", 499, "lasting")
    assert not warned(caplog, "lasting")
    warnings.is_over("b")
    warnings.warn_if_lasting("b", 500, "lasting")
    assert not warned(caplog, "lasting")
    warnings.warn_if_lasting("b", 1_000, "lasting")
    assert warned(caplog, "lasting")


# Errors


def _list_offsets(cluster: Cluster) -> object:
    with cluster.admin() as admin:
        return admin.list_offsets({MISSING: OffsetSpec.LATEST}).check()


def _end_offsets(cluster: Cluster) -> object:
    with cluster.consumer() as consumer:
        return consumer.end_offsets([MISSING])


def _position(cluster: Cluster) -> object:
    with cluster.consumer() as consumer:
        consumer.assign([MISSING])
        return consumer.position(MISSING)


def _commit(cluster: Cluster) -> object:
    with cluster.consumer(group_id="g") as consumer:
        consumer.commit({MISSING: embedlog.OffsetAndMetadata(1)})
        return None


def _send_offsets(cluster: Cluster) -> object:
    with (
        cluster.consumer(group_id="g", enable_auto_commit=False) as consumer,
        cluster.producer(transactional_id="x") as producer,
    ):
        producer.init_transactions()
        with producer.transaction() as transaction:
            transaction.send_offsets(consumer, {MISSING: embedlog.OffsetAndMetadata(1)})
        return None


@pytest.mark.parametrize("call", [_list_offsets, _end_offsets, _position, _commit, _send_offsets])
def test_in_process_a_missing_partition_is_an_error_at_once(
    simulated: Cluster, call: Callable[[Cluster], object]
) -> None:
    began_ms = simulated.runtime.clock.monotonic_ms()
    with pytest.raises(errors.UnknownTopicOrPartition, match="t-9"):
        call(simulated)
    assert simulated.runtime.clock.monotonic_ms() - began_ms < 1_000


def test_a_partition_that_was_added_since_is_found(simulated: Cluster) -> None:
    with simulated.admin() as admin, simulated.consumer() as consumer:
        assert consumer.end_offsets([("t", 1)]) == {("t", 1): 0}
        assert admin.list_offsets({("t", 1): OffsetSpec.LATEST})[("t", 1)].offset == 0
        with simulated.admin() as another:
            another.create_partitions({"t": 10}).check()
        assert consumer.end_offsets([MISSING]) == {MISSING: 0}
        assert admin.list_offsets({MISSING: OffsetSpec.LATEST})[MISSING].offset == 0


@pytest.mark.parametrize("call", ["list_offsets", "end_offsets", "position"])
def test_over_a_network_the_time_out_names_the_true_reason(call: str) -> None:
    with embedlog.open() as cluster:
        cluster.create_topic("t", 2)
        address = cluster.listen().address
        with (
            embedlog.Admin(address, default_api_timeout_ms=300) as admin,
            embedlog.Consumer(address, default_api_timeout_ms=300) as consumer,
            pytest.raises(errors.TimedOut, match="no partition t-9: topic 't' has 2") as refused,
        ):
            if call == "list_offsets":
                admin.list_offsets({MISSING: OffsetSpec.LATEST})
            elif call == "end_offsets":
                consumer.end_offsets([MISSING])
            else:
                consumer.assign([MISSING])
                consumer.position(MISSING)
        assert "did not answer" not in str(refused.value)


def test_over_a_network_a_partition_that_is_added_meanwhile_is_found() -> None:
    import threading

    with embedlog.open() as cluster:
        cluster.create_topic("t", 2)
        with embedlog.Consumer(cluster.listen().address) as consumer:
            assert consumer.end_offsets([("t", 0)]) == {("t", 0): 0}
            adding = threading.Timer(
                0.1, lambda: cluster.admin().create_partitions({"t": 10}).check()
            )
            adding.start()
            assert consumer.end_offsets([MISSING], timeout_ms=20_000) == {MISSING: 0}
            adding.join()


def test_a_word_in_place_of_an_offset_spec_is_refused_with_the_name_of_the_class(
    simulated: Cluster,
) -> None:
    with simulated.admin() as admin, pytest.raises(TypeError, match="OffsetSpec.LATEST"):
        admin.list_offsets({("t", 0): "latest"})  # type: ignore[dict-item]


# Errors that are raised again


def frames(error: BaseException) -> int:
    return len(traceback.extract_tb(error.__traceback__))


def raised_by(call: Callable[[], object]) -> BaseException:
    try:
        call()
    except embedlog.EmbedlogError as error:
        return error
    raise AssertionError("nothing was raised")


def test_an_error_that_is_raised_again_and_again_keeps_one_traceback() -> None:
    with embedlog.open() as cluster:
        cluster.create_topic("t")
        producer = cluster.producer(max_request_size=1000)
        future = producer.send("t", b"x" * 2000)
        admin = cluster.admin()
        results = admin.create_topics({"t": 1})
        consumer = cluster.consumer()
        for call in (
            future.result,
            results.check,
            lambda: results["t"],
            lambda: producer.send("no blanks", b"").result(),
            lambda: consumer.partitions_for("no blanks"),
        ):
            first = frames(raised_by(call))
            for _ in range(20):
                again = frames(raised_by(call))
            assert again == first, call
        consumer.close()
        producer.close()
