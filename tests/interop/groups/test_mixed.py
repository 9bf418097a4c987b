"""Different clients in one group: members come, leave and die, and no promise is broken."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.interop.groups.checker import losses
from tests.interop.groups.group_run import GroupRun
from tests.interop.groups.member import CLASSIC, CONSUMER

pytestmark = pytest.mark.interop

StartRun = Callable[..., GroupRun]
PROTOCOLS = [*(("classic", client) for client in CLASSIC), *(("consumer", c) for c in CONSUMER)]


@pytest.mark.parametrize(("protocol", "client"), PROTOCOLS, ids=lambda word: word)
def test_members_of_one_client_come_die_and_leave(
    protocol: str, client: str, start_run: StartRun
) -> None:
    run = start_run(partitions=4)
    first, second = run.join(client, protocol=protocol), run.join(client, protocol=protocol)
    run.produce(80)
    run.wait_until_stable(each=2)
    run.produce(80)
    first.kill()
    run.produce(80)
    run.wait_until_stable(each=4)
    run.join(client, protocol=protocol)
    run.wait_until_stable(each=2)
    second.close()
    run.produce(80)
    run.wait_until_stable(each=4)
    run.finish()


def test_every_classic_client_in_one_group(start_run: StartRun) -> None:
    run = start_run(partitions=2 * len(CLASSIC))
    members = [run.join(client) for client in CLASSIC]
    run.produce(200)
    run.wait_until_stable(each=2)
    run.produce(200)
    members[0].kill()
    members[3].close()
    run.produce(200)
    run.wait_until_spread()
    run.finish()


def test_both_protocols_in_one_group(start_run: StartRun) -> None:
    run = start_run(partitions=6)
    classic = run.join("confluent")
    run.wait_until_stable(each=6)
    run.produce(120)
    run.wait_until_consumed()
    other = run.join("confluent", protocol="consumer")
    run.wait_until_stable(each=3)
    run.produce(120)
    run.join("kafka_python")
    run.wait_until_stable(each=2)
    run.produce(120)
    classic.kill()
    run.wait_until_stable(each=3)
    other.close()
    run.produce(120)
    run.wait_until_stable(each=6)
    run.finish()


def test_a_quiet_group_keeps_its_assignment(start_run: StartRun) -> None:
    run = start_run(partitions=4)
    for client in ("confluent", "kafka_python", "aio_kafka", "kafkajs"):
        run.join(client)
    run.wait_until_stable(each=1)
    before = len(run.history().events)
    time.sleep(2.5 * run.session_ms / 1000)
    assert len(run.history().events) == before
    run.produce(40)
    run.finish()
    assert losses(run.history()) == 0


@pytest.mark.parametrize("client", ["confluent", "kafka_python", "java", "embedlog_consumer"])
def test_a_static_member_gets_its_partitions_back(client: str, start_run: StartRun) -> None:
    # The session is long enough for the start of a JVM, which takes seconds.
    run = start_run(partitions=4, session_ms=15_000)
    first = run.join(client, instance="first")
    second = run.join(client, instance="second")
    run.wait_until_stable(each=2)
    run.produce(40)
    run.wait_until_consumed()
    had, others = first.owned(), second.owned()
    others_events = len([event for event in second.read() if event.kind != "records"])
    first.kill()
    run.produce(40)
    again = run.join(client, instance="first")
    run.wait_until_stable(each=2)
    assert again.owned() == had
    assert second.owned() == others
    moves = [event.kind for event in second.read()[others_events:]]
    assert not {"assigned", "revoked", "lost"} & set(moves)
    run.finish()


@pytest.mark.parametrize("client", ["confluent", "kafka_python", "embedlog_consumer"])
def test_a_new_member_with_a_static_members_id_fences_the_old_one(
    client: str, start_run: StartRun
) -> None:
    run = start_run(partitions=2)
    old = run.join(client, instance="only")
    run.produce(40)
    run.wait_until_stable(each=2)
    new = run.join(client, instance="only")
    run.wait(lambda: new.owned() == run.partitions, lambda: f"{new} has {new.owned()}")
    run.produce(40)  # kafka-python notices when it commits
    run.wait(lambda: not old.is_alive, lambda: f"{old} is not fenced")
    assert old.read()[-1].kind == "fenced"
    run.wait_until_stable(each=2)
    run.finish()


@pytest.mark.parametrize(
    ("client", "protocol"),
    [("confluent", "classic"), ("confluent", "consumer"), ("kafka_python", "classic"),
     ("aio_kafka", "classic"), ("kafkajs", "classic"), ("embedlog_consumer", "classic"),
     ("embedlog_consumer", "consumer")],
)  # fmt: skip
def test_a_member_frozen_too_long_owns_and_commits_nothing(
    client: str, protocol: str, start_run: StartRun
) -> None:
    run = start_run(partitions=2)
    frozen = run.join(client, protocol=protocol)
    run.wait_until_stable(each=2)
    run.produce(20)
    run.wait_until_consumed()
    run.produce(20)
    frozen.freeze()
    run.join("confluent", protocol=protocol)
    run.produce(20)
    run.wait_until_stable(each=2)
    run.wait_until_consumed()
    frozen.thaw()
    run.wait_until_stable(each=1)
    run.produce(20)
    run.finish()
