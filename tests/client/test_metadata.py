"""A client's metadata: when it asks, which answers it believes, what it forgets."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog import errors
from embedlog.client.metadata import Metadata
from embedlog.client.parse_settings import parse
from embedlog.client.producer.settings import complete
from embedlog.client.settings import PRODUCER
from embedlog.errors import KafkaError, error_for
from embedlog.runtime.pending import Pending, completed
from embedlog.testing import SimRuntime, sim_runtime
from wire.schemas.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from wire.schemas.produce import NodeEndpoint


class Cluster:
    """A transport that answers Metadata from the test's data, and notes the requests."""

    in_process = False

    def __init__(self) -> None:
        self.runtime: SimRuntime = sim_runtime(seed=1)
        self.nodes = {1: ("one", 1), 2: ("two", 2)}
        self.topics: dict[str, tuple[bytes, list[tuple[int, int]]]] = {}
        self.asked: list[tuple[int, list[str] | None]] = []
        self.failures: list[KafkaError] = []
        self.response_error = 0
        self.known_nodes: dict[int, tuple[str, int]] = {}
        self.known_ids: list[str | None] = []
        self.bootstraps = 0

    def lead(self, topic: str, *leaders: int, epoch: int = 0, topic_id: bytes = b"i" * 16) -> None:
        self.topics[topic] = (topic_id, [(leader, epoch) for leader in leaders])

    def set_nodes(self, nodes: dict[int, tuple[str, int]], cluster_id: str | None = None) -> None:
        self.known_nodes = dict(nodes)
        self.known_ids.append(cluster_id)

    def drop_requests(self, reason: str) -> None:
        raise NotImplementedError

    def bootstrap_again(self) -> None:
        self.bootstraps += 1

    def send(self, node_id: int, request: Any) -> Pending[Any]:
        names = None if request.topics is None else [topic.name for topic in request.topics]
        self.asked.append((self.runtime.clock.monotonic_ms(), names))
        if self.failures:
            failed: Pending[Any] = Pending()
            failed.fail(self.failures.pop(0))
            return failed
        if self.response_error:
            code, self.response_error = self.response_error, 0
            return completed(MetadataResponse(error_code=code))
        return completed(
            MetadataResponse(
                brokers=[
                    MetadataResponseBroker(node_id=number, host=host, port=port)
                    for number, (host, port) in self.nodes.items()
                ],
                cluster_id="mine",
                topics=[self._described(name) for name in names or self.topics],
            )
        )

    def _described(self, name: str) -> MetadataResponseTopic:
        if name not in self.topics:
            return MetadataResponseTopic(name=name, error_code=3)
        topic_id, leaders = self.topics[name]
        partitions = [
            MetadataResponsePartition(partition_index=index, leader_id=leader, leader_epoch=epoch)
            for index, (leader, epoch) in enumerate(leaders)
        ]
        return MetadataResponseTopic(name=name, topic_id=topic_id, partitions=partitions)


class Bench:
    def __init__(self, **settings: Any) -> None:
        self.cluster = Cluster()
        self.clock = self.cluster.runtime.clock
        known = complete(parse(PRODUCER, settings), in_process=False)
        self.metadata = Metadata(self.cluster, known, create_topics=True)  # type: ignore[arg-type]

    def advance(self) -> int | None:
        return self.metadata.advance(self.clock.monotonic_ms())

    def run_for(self, delay_ms: int) -> None:
        """Let time pass as a client does: call `advance` whenever it is due."""
        end = self.clock.monotonic_ms() + delay_ms
        while True:
            delay = self.advance()
            left = end - self.clock.monotonic_ms()
            if left <= 0:
                return
            self.clock.advance(left if delay is None else min(max(delay, 1), left))

    @property
    def names_asked(self) -> list[list[str] | None]:
        return [names for _, names in self.cluster.asked]

    def pauses(self) -> list[int]:
        times = [at for at, _ in self.cluster.asked]
        return [later - earlier for earlier, later in zip(times, times[1:], strict=False)]


@pytest.fixture
def bench() -> Bench:
    made = Bench()
    made.cluster.lead("a", 1, 2)
    made.cluster.lead("b", 2)
    return made


def _grows(pauses: list[int], expected: list[int]) -> bool:
    pairs = zip(pauses, expected, strict=True)
    return all(0.8 * want <= got <= min(1.2 * want, 1000) for got, want in pairs)


def test_only_a_new_topic_is_asked_for_and_at_once(bench: Bench) -> None:
    bench.metadata.want("a")
    bench.advance()
    bench.metadata.want("b")
    bench.advance()
    bench.metadata.want("a")
    assert bench.advance() == 300_000
    assert bench.names_asked == [["a"], ["b"]]
    assert set(bench.metadata.topics) == {"a", "b"}


def test_everything_is_asked_again_when_it_is_old(bench: Bench) -> None:
    for name in "ab":
        bench.metadata.want(name)
        bench.advance()
    bench.run_for(299_000)
    assert len(bench.cluster.asked) == 2
    bench.metadata.want("a")
    bench.metadata.want("b")
    bench.run_for(1_000)
    assert bench.names_asked[2:] == [["a", "b"]]
    assert bench.metadata.age_ms(bench.clock.monotonic_ms()) == 0


def test_a_topic_that_nobody_uses_is_forgotten() -> None:
    bench = Bench(metadata_max_age_ms=60_000, metadata_max_idle_ms=100_000)
    bench.cluster.lead("a", 1)
    bench.cluster.lead("b", 1)
    for name in "ab":
        bench.metadata.want(name)
    bench.run_for(60_000)
    bench.metadata.want("a")
    bench.run_for(60_000)
    assert bench.names_asked == [["a", "b"], ["a", "b"], ["a"]]
    assert set(bench.metadata.topics) == {"a"}
    bench.metadata.want("b")
    bench.advance()
    assert bench.names_asked[-1] == ["b"]


def test_requests_without_an_answer_are_repeated_less_and_less_often(bench: Bench) -> None:
    bench.cluster.failures = [errors.Network("gone")] * 6
    bench.metadata.want("a")
    bench.run_for(10_000)
    assert _grows(bench.pauses(), [100, 200, 400, 800, 1000, 1000])
    assert bench.metadata.last_error is None
    assert "a" in bench.metadata.topics


def test_answers_that_tell_nothing_new_are_asked_for_less_and_less_often(bench: Bench) -> None:
    bench.metadata.want("a")
    bench.advance()
    for _ in range(60):
        bench.metadata.request_update()
        bench.run_for(100)
    pauses = bench.pauses()
    assert _grows(pauses[2:6], [200, 400, 800, 1000]), pauses
    bench.cluster.lead("a", 2, 2, epoch=1)
    bench.run_for(2_000)
    bench.cluster.asked.clear()
    for _ in range(3):
        bench.metadata.request_update()
        bench.run_for(130)
        bench.cluster.lead("a", 1, 1, epoch=len(bench.cluster.asked) + 2)
    assert max(bench.pauses()) <= 260, "news, and the pause is short again"


def test_a_topic_without_leaders_is_asked_for_until_it_has_them(bench: Bench) -> None:
    bench.cluster.lead("a", 1, -1)
    bench.metadata.want("a")
    bench.run_for(2_000)
    assert _grows(bench.pauses()[:3], [100, 200, 400])
    bench.cluster.lead("a", 1, 2, epoch=1)
    bench.run_for(2_000)
    count = len(bench.cluster.asked)
    bench.run_for(20_000)
    assert len(bench.cluster.asked) == count


def test_an_older_leader_epoch_is_not_believed_but_another_topic_of_that_name_is(
    bench: Bench,
) -> None:
    metadata = bench.metadata
    bench.cluster.lead("a", 1, epoch=5)
    metadata.want("a")
    bench.advance()
    for leader, epoch, topic_id, expected in (
        (2, 4, b"i" * 16, (1, 5)),
        (2, 5, b"i" * 16, (2, 5)),
        (1, -1, b"i" * 16, (1, -1)),
        (2, 7, b"i" * 16, (2, 7)),
        (1, 0, b"j" * 16, (1, 0)),
    ):
        bench.cluster.lead("a", leader, epoch=epoch, topic_id=topic_id)
        metadata.request_update()
        bench.run_for(2_000)
        found = metadata.leader("a", 0)
        assert found is not None
        assert (found.leader, found.leader_epoch) == expected


def test_a_leader_that_is_no_node_of_the_cluster_is_none(bench: Bench) -> None:
    bench.cluster.lead("a", 3)
    bench.metadata.want("a")
    bench.advance()
    assert bench.metadata.leader("a", 0) is None
    assert bench.metadata.leader("a", 1) is None
    assert bench.metadata.leader("b", 0) is None


def test_a_broker_that_names_the_leader_is_believed_if_it_knows_more(bench: Bench) -> None:
    metadata = bench.metadata
    bench.cluster.lead("a", 1, 1, epoch=5)
    metadata.want("a")
    bench.advance()
    news: list[int] = []
    metadata.on_news = lambda: news.append(1)
    metadata.learn_leaders({("a", 0): (2, 5)}, [])
    metadata.learn_leaders({("a", 0): (9, 6), ("a", 7): (2, 6), ("x", 0): (2, 6)}, [])
    assert not news
    endpoint = NodeEndpoint(node_id=9, host="nine", port=9)
    metadata.learn_leaders({("a", 0): (9, 6)}, [endpoint])
    assert news == [1]
    first, second = metadata.leader("a", 0), metadata.leader("a", 1)
    assert first is not None and (first.leader, first.leader_epoch) == (9, 6)
    assert second is not None and (second.leader, second.leader_epoch) == (1, 5)
    assert bench.cluster.known_nodes[9] == ("nine", 9)
    metadata.request_update()
    bench.run_for(500)
    kept = metadata.leader("a", 0)
    assert kept is None, "the old epoch is not believed, and node 9 is not in that answer"


def test_all_is_doubted_when_nobody_answers_for_long(bench: Bench) -> None:
    bench.cluster.failures = [errors.Network("gone")] * 10_000
    bench.metadata.want("a")
    bench.run_for(299_000)
    assert bench.cluster.bootstraps == 0
    bench.run_for(3_000)
    assert bench.cluster.bootstraps == 1
    bench.run_for(301_000)
    assert bench.cluster.bootstraps == 2


def test_a_broker_of_another_cluster_sends_back_to_the_first_addresses(bench: Bench) -> None:
    bench.cluster.response_error = 129
    bench.metadata.want("a")
    bench.run_for(1_000)
    assert bench.cluster.bootstraps == 1
    assert "a" in bench.metadata.topics


def test_a_broker_that_knows_none_yet_is_asked_again(bench: Bench) -> None:
    nodes, bench.cluster.nodes = bench.cluster.nodes, {}
    bench.metadata.want("a")
    bench.advance()
    assert bench.metadata.topics == {}
    assert bench.metadata.answer_count == 0
    bench.cluster.nodes = nodes
    bench.run_for(1_000)
    assert "a" in bench.metadata.topics


def test_the_nodes_are_told_of_with_their_cluster(bench: Bench) -> None:
    bench.metadata.want("a")
    bench.advance()
    endpoint = NodeEndpoint(node_id=9, host="nine", port=9)
    bench.metadata.learn_leaders({("a", 0): (9, 6)}, [endpoint])
    assert bench.cluster.known_ids == ["mine", "mine"]
    assert bench.metadata.cluster.cluster_id == "mine"


def test_an_error_of_the_request_is_raised_and_one_of_a_topic_is_kept(bench: Bench) -> None:
    bench.cluster.failures = [error_for(31)]
    bench.metadata.want("a")
    with pytest.raises(errors.ClusterAuthorizationFailed):
        bench.advance()
    assert isinstance(bench.metadata.failure, errors.ClusterAuthorizationFailed)
    bench.metadata.want("missing")
    bench.run_for(300)
    assert isinstance(bench.metadata.errors["missing"], errors.UnknownTopicOrPartition)
    assert bench.metadata.topic_error("missing") is None, "it may yet be made"


def test_a_question_about_all_topics_is_asked_until_it_is_answered(bench: Bench) -> None:
    bench.cluster.failures = [errors.Network("gone")]
    bench.metadata.want_all()
    bench.run_for(1_000)
    assert bench.names_asked == [None, None]
    assert set(bench.metadata.topics) == {"a", "b"}


def test_a_topic_that_was_missing_has_no_error_once_it_is_there(bench: Bench) -> None:
    bench.metadata.want("missing")
    bench.run_for(300)
    assert "missing" in bench.metadata.errors
    bench.cluster.lead("missing", 1)
    bench.run_for(2_000)
    assert "missing" in bench.metadata.topics
    assert "missing" not in bench.metadata.errors


def test_questions_about_new_topics_do_not_put_the_others_off() -> None:
    bench = Bench(metadata_max_idle_ms=10_000_000)
    for name in "ab":
        bench.cluster.lead(name, 1)
    bench.metadata.want("a")
    bench.run_for(200_000)
    bench.metadata.want("b")
    bench.run_for(101_000)
    assert bench.names_asked == [["a"], ["b"], ["a", "b"]]


def test_two_lost_answers_long_after_each_other_are_no_reason_to_doubt_all() -> None:
    bench = Bench(metadata_max_idle_ms=10_000_000)
    bench.cluster.lead("a", 1)
    bench.metadata.want("a")
    for _ in range(2):
        bench.cluster.failures = [errors.Network("gone")]
        bench.run_for(310_000)
        assert not bench.cluster.failures
    assert bench.cluster.bootstraps == 0


def test_a_topic_in_use_is_never_idle() -> None:
    bench = Bench(metadata_max_age_ms=60_000, metadata_max_idle_ms=100_000)
    for name in "ab":
        bench.cluster.lead(name, 1)
        bench.metadata.want(name)
    bench.metadata.wanted.in_use = lambda: ["a"]
    bench.run_for(240_000)
    assert set(bench.metadata.topics) == {"a"}


def test_the_first_epoch_is_older_than_the_second(bench: Bench) -> None:
    for leader, epoch in ((1, 1), (2, 0)):
        bench.cluster.lead("a", leader, epoch=epoch)
        bench.metadata.want("a")
        bench.metadata.request_update()
        bench.run_for(2_000)
    found = bench.metadata.leader("a", 0)
    assert found is not None
    assert (found.leader, found.leader_epoch) == (1, 1)


def test_a_known_leader_that_has_left_the_cluster_leads_no_more(bench: Bench) -> None:
    bench.cluster.lead("a", 1, 2, epoch=5)
    bench.metadata.want("a")
    bench.advance()
    del bench.cluster.nodes[1]
    bench.cluster.lead("a", 2, 2, epoch=4)
    bench.metadata.request_update()
    bench.run_for(2_000)
    info = bench.metadata.topics["a"]
    assert [each.leader for each in info.partitions] == [-1, 2]
    assert info.available == [1]
