"""Play scenarios against a cluster: a `Run` for each broker, and faults of brokers.

@scenario_on("failing")
def the_leader_stops(cluster: ClusterRun) -> None:
    topic = cluster.topic("t", [1, 2, 3])
    cluster.stop(1)
    cluster.see(topic, leader=2, isr=[2, 3])
    cluster[2].send(...)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.golden.normal import WORDS, Normaliser
from tests.golden.requests import Topic, fetch
from tests.golden.run import POLL_COUNT_MAX, POLL_MS, Run
from tests.golden.three_brokers.clusters import DIRECTORIES, KINDS
from tests.golden.three_brokers.requests import assigned, described
from tests.golden.three_brokers.targets import ClusterTarget
from tests.support.kafka_cluster import BROKERS
from wire.schemas.describe_cluster import DescribeClusterRequest
from wire.schemas.metadata import MetadataRequest

Scenario = Callable[["ClusterRun"], None]
SCENARIOS: dict[str, Scenario] = {}
KIND_OF: dict[str, str] = {}
FETCH_WITH_EPOCHS = 12
SETTLE_MS = 150
"""A real broker gets new metadata a moment before its partitions apply it."""

CLUSTER_WORDS: dict[str, str | Callable[[Any], str]] = {**WORDS, "controller_id": "<any broker>"}


def _directory(path: str) -> str:
    """Return the name of the directory in a path."""
    return next((f"<{name}>" for name in DIRECTORIES if name in path.split("/")), path)


def scenario_on(kind: str) -> Callable[[Scenario], Scenario]:
    """Register a scenario under its function's name, played on one of the `KINDS`."""
    assert kind in KINDS, kind

    def register(function: Scenario) -> Scenario:
        assert function.__name__ not in SCENARIOS, function.__name__
        SCENARIOS[function.__name__] = function
        KIND_OF[function.__name__] = kind
        return function

    return register


class ClusterRun:
    """One scenario's play against one cluster; `cluster[2]` sends to broker 2.

    All brokers share the steps and the names of ids.
    """

    def __init__(self, target: ClusterTarget, name: str) -> None:
        self.target = target
        self.live = list(BROKERS)
        self._runs = {node: Run(target.broker(node), name) for node in BROKERS}
        self.name = self._runs[1].name
        self.steps: list[dict[str, Any]] = []
        words = dict(CLUSTER_WORDS)
        if KINDS[KIND_OF[name]].directories:
            words["log_dir"] = _directory
        self.normal = Normaliser(self.group(""), self.topic_name(""), words)
        for node, run in self._runs.items():
            run.steps, run.normal, run.where = self.steps, self.normal, {"broker": node}

    def __getitem__(self, node: int) -> Run:
        return self._runs[node]

    def topic_name(self, suffix: str = "t") -> str:
        """Return a topic name of this scenario."""
        return self._runs[1].topic(suffix)

    def group(self, suffix: str = "g") -> str:
        """Return a group id of this scenario."""
        return self._runs[1].group(suffix)

    def topic(self, suffix: str, *assignments: Sequence[int], **configs: str) -> Topic:
        """Create a topic with these replicas by partition; configs: dots written as underscores.

        This adds no step, and ends when all live brokers know the topic.
        """
        name = self.topic_name(suffix)
        dotted = {key.replace("_", "."): value for key, value in configs.items()}
        answer = self._anyone().setup(assigned(name, *assignments, configs=dotted), 7)
        (made,) = answer.topics
        assert made.error_code == 0, made
        self.normal.learn(made.topic_id, f"id of {suffix}")
        self.known(name)
        return name, made.topic_id

    def topics(self, *assignments: Sequence[int]) -> list[Topic]:
        """Create a topic of one partition for each; partitions of a topic have equally many
        replicas.
        """
        return [self.topic(f"t{index}", replicas) for index, replicas in enumerate(assignments)]

    def known(self, name: str) -> None:
        """Return when every live broker knows the topic and may serve it."""
        for run in self._everyone():
            run.until(
                lambda answer: answer.topics[0].error_code == 0, described(name), 0, keep=False
            )
        self.let_pass(SETTLE_MS)

    def see(
        self,
        topic: Topic | str,
        note: str = "",
        *,
        partition: int = 0,
        leader: int | None = None,
        isr: Sequence[int] | None = None,
        elr: Sequence[int] | None = None,
        replicas: Sequence[int] | None = None,
        keep: bool = True,
    ) -> Any:
        """Wait until every live broker has this state of a partition; one step records all of it.

        `isr`, `elr` and `replicas` are sets here; the step holds their order. The step is the
        answer of the live broker with the least id.
        """

        def holds(answer: Any) -> bool:
            found = [p for p in answer.topics[0].partitions if p.partition_index == partition]
            return all(
                leader in (None, row.leader_id)
                and (isr is None or set(isr) == set(row.isr_nodes))
                and (elr is None or set(elr) == set(row.eligible_leader_replicas or ()))
                and (replicas is None or list(replicas) == row.replica_nodes)
                for row in found
            ) and bool(found)

        name = topic if isinstance(topic, str) else topic[0]
        for run in reversed(list(self._everyone())):
            is_last = run.where["broker"] == self.live[0]
            if is_last:
                self.let_pass(SETTLE_MS)
            answer = run.until(holds, described(name), 0, note, keep=keep and is_last)
            assert holds(answer), answer
        return answer

    def reaches(
        self, node: int, topic: Topic, offset: int, note: str = "", *, keep: bool = True
    ) -> None:
        """Wait until a broker's high watermark reaches `offset`: one step with the records that it
        returns.
        """

        def holds(answer: Any) -> bool:
            return bool(answer.responses[0].partitions[0].high_watermark == offset)

        request = fetch(topic, FETCH_WITH_EPOCHS)
        answer = self[node].until(holds, request, FETCH_WITH_EPOCHS, note, keep=keep)
        assert holds(answer), answer

    def keep(self, note: str, fact: Any) -> None:
        """Add a step with a result of the scenario itself."""
        self.steps.append({"note": note, "answer": fact})

    def let_pass(self, delay_ms: int) -> None:
        """Let time pass: real time for real brokers."""
        self.target.let_pass(delay_ms)

    # Faults of brokers: a step each

    def stop(self, node: int) -> None:
        """Shut a broker down in an orderly way; return when the others know of its end."""
        self._ends(node, "stops", self.target.stop)

    def kill(self, node: int) -> None:
        """End a broker at once; return when the others know of its end."""
        self._ends(node, "is killed", self.target.kill)

    def start(self, node: int) -> None:
        """Start a broker again; return when all know of it."""
        self.target.start(node)
        self.live = sorted([*self.live, node])
        self._await_members()
        self.keep(f"broker {node} starts", None)

    def pause(self, node: int) -> None:
        """Suspend a broker, and return at once."""
        self.target.pause(node)
        self.live.remove(node)
        self.keep(f"broker {node} pauses", None)

    def resume(self, node: int) -> None:
        """Resume a paused broker."""
        self.target.resume(node)
        self.live = sorted([*self.live, node])
        self.keep(f"broker {node} goes on", None)

    def close(self) -> None:
        """Close the connections; the steps stay."""
        for run in self._runs.values():
            run.close()

    def _ends(self, node: int, what: str, end: Callable[[int], None]) -> None:
        self._runs[node].close()
        end(node)
        self.live.remove(node)
        self._await_members()
        self.keep(f"broker {node} {what}", None)

    def _await_members(self) -> None:
        """Return when every live broker has exactly these live brokers in its metadata and
        partitions.
        """
        for run in self._everyone():
            for _ in range(POLL_COUNT_MAX):
                found = _members(run)
                if found == [self.live, self.live]:
                    break
                self.let_pass(POLL_MS)
            else:
                raise AssertionError(f"{run.where} does not see {self.live}: {found}")
        self.let_pass(SETTLE_MS)

    def _everyone(self) -> Iterator[Run]:
        for node in self.live:
            yield self._runs[node]

    def _anyone(self) -> Run:
        return self._runs[self.live[0]]


def _members(run: Run) -> list[list[int]]:
    """Return the brokers in DescribeCluster and in Metadata."""
    answer = run.setup(DescribeClusterRequest(), 2)
    metadata = run.setup(MetadataRequest(topics=[]), 12)
    return [
        sorted(row.broker_id for row in answer.brokers),
        sorted(row.node_id for row in metadata.brokers),
    ]


def play(target: ClusterTarget, name: str) -> list[dict[str, Any]]:
    """Play one scenario; return its steps with the normalised answers."""
    cluster = ClusterRun(target, name)
    try:
        SCENARIOS[name](cluster)
    except AssertionError as error:
        error.add_note("\n".join(str(step) for step in [f"{name}: ...", *cluster.steps[-6:]]))
        raise
    finally:
        cluster.close()
    return cluster.steps
