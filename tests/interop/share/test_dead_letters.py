"""The dead letter queue, set up by kafka-configs, and read by a plain consumer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.interop.java_tools import run
from tests.interop.share.confluent_member import ConfluentMember
from tests.interop.share.share_group import ShareGroup, wait

pytestmark = [pytest.mark.interop, pytest.mark.slow]
NewGroup = Callable[..., ShareGroup]


def test_rejected_and_exhausted_records_become_dead_letters(new_group: NewGroup) -> None:
    group = new_group(partitions=2)
    queue = f"dlq.{group.name}"
    entity = ("--entity-type", "groups", "--entity-name", group.name)
    to = ("--bootstrap-server", group.address)
    settings = (
        f"errors.deadletterqueue.topic.name={queue},errors.deadletterqueue.copy.record.enable=true"
        ",share.delivery.count.limit=2"
    )
    altered = run("configs", *to, "--alter", *entity, "--add-config", settings)
    assert f"Completed updating config for group {group.name}." in altered
    described = run("configs", *to, "--describe", *entity)
    assert f"errors.deadletterqueue.topic.name={queue}" in described
    assert "share.delivery.count.limit=2" in described
    with ConfluentMember(group) as member:
        group.produce(["good", "bad", "hard"], partition=1)
        assert member.poll() == [(0, 1), (1, 1), (2, 1)]
        member.ack("accept", 0)
        member.ack("reject", 1)
        member.ack("release", 2)
        member.commit()
        assert member.poll() == [(2, 2)]
        member.ack("release")
        member.commit()
        letters = {each.value(): dict(each.headers()) for each in group.dead_letters(queue, 2)}
        wait(lambda: group.offsets()[1].lag == 0, lambda: f"{group.offsets()}")
    place = {
        "__dlq.errors.topic": group.topic.encode(),
        "__dlq.errors.partition": b"1",
        "__dlq.errors.group": group.name.encode(),
    }
    rejected = {
        "__dlq.errors.offset": b"1",
        "__dlq.errors.delivery.count": b"1",
        "__dlq.errors.message": b"Offset rejected by client.",
    }
    exhausted = {
        "__dlq.errors.offset": b"2",
        "__dlq.errors.delivery.count": b"2",
        "__dlq.errors.message": b"Offset delivery count exceeded the threshold.",
    }
    assert letters == {b"bad": {**place, **rejected}, b"hard": {**place, **exhausted}}
    deleted = run("configs", *to, "--alter", *entity, "--delete-config",
                  "errors.deadletterqueue.topic.name")  # fmt: skip
    assert f"Completed updating config for group {group.name}." in deleted
    assert queue not in run("configs", *to, "--describe", *entity)
