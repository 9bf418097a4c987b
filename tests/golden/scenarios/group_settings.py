"""Settings of single groups, disabled protocols, and records that are too large to be stored."""

from __future__ import annotations

from tests.golden.group_requests import (
    commit,
    describe_consumers,
    first_beat,
    join,
    list_groups,
    sync,
)
from tests.golden.members import Consumers, form, show, warm_up
from tests.golden.requests import make_topic
from tests.golden.run import Run, scenario_on
from wire.schemas.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from wire.schemas.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

GROUP, SET, DELETE = 32, 0, 1


def _alter(
    group: str, name: str, value: str | None, *, operation: int = SET
) -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(name=name, config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=GROUP, resource_name=group, configs=[config])
    return IncrementalAlterConfigsRequest(resources=[resource])


def _describe(group: str, *keys: str) -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(
        resource_type=GROUP, resource_name=group, configuration_keys=list(keys)
    )
    return DescribeConfigsRequest(resources=[resource], include_synonyms=True)


@scenario_on("groups")
def settings_of_a_group(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run)
    group = Consumers(run, run.group())
    interval, session = "consumer.heartbeat.interval.ms", "consumer.session.timeout.ms"
    group.join("m1", topic[0])
    for name, value in (
        (interval, "7000"), (session, "50000"),
        (interval, "4999"), (interval, "15001"), (session, "44999"), (session, "60001"),
        (interval, "x"), ("no.such.setting", "1"), ("group.consumer.session.timeout.ms", "50000"),
        ("share.isolation.level", "read_committed"),
    ):  # fmt: skip
        run.send(_alter(group.group, name, value), 1, f"{name}={value}")
    run.send(_describe(group.group, interval, session), 4, "the group's")
    run.send(_describe(run.group("other"), interval, session), 4, "another group's")
    group.beat("m1", "the group's interval")
    Consumers(run, run.group("other")).join("m1", topic[0], note="another group's interval")
    run.send(_alter(group.group, interval, None, operation=DELETE), 1, "deleted")
    group.beat("m1", "the default again")
    run.send(_alter("", interval, "7000"), 1, "the empty group")


@scenario_on("classic only")
def consumer_protocol_switched_off(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run)
    for version in (0, 1):
        request = first_beat(run.group(), "m" if version else "", topic[0])
        run.send(request, version, "a consumer heartbeat")
        run.send(describe_consumers(run.group()), version, "described")
    (a,) = form(run, run.group(), "a")
    a.beat("a classic member")
    run.send(list_groups(), 5, "listed")


@scenario_on("groups")
def too_large_to_be_stored(run: Run) -> None:
    """Larger than `max.message.bytes`: one record, and the records of one commit together."""
    warm_up(run)
    group = run.group()
    told = run.setup(join(group), 3)
    run.normal(told)
    member = told.member_id
    large = sync(group, member, 1, {member: bytes(1_200_000)})
    run.send(large, 5, "an assignment that cannot be stored")
    show(run, group, note="after that")
    told = run.send(join(group, member), 9, "the member joins again")
    run.send(sync(group, member, told.generation_id, {member: b"small"}), 5, "a smaller one")
    topic = make_topic(run)
    offsets = [(0, number, "x" * 4000) for number in range(300)]
    run.send(commit(run.group("offsets"), topic, *offsets), 9, "1.2 megabytes of metadata")
    run.send(commit(run.group("offsets"), topic, *offsets[:200]), 9, "0.8 megabytes of metadata")


@scenario_on("groups")
def commits_of_members_behind(run: Run) -> None:
    """An older epoch is accepted for partitions that the member has owned since then (KIP-1251)."""
    warm_up(run)
    topic = make_topic(run, partitions=3)
    group = Consumers(run, run.group())
    first = group.join("m1", topic[0]).member_epoch
    group.join("m2", topic[0])
    group.beat("m1", "m1 has revoked", owns=[(topic, [0, 1])])
    group.show()
    for version in (9, 10):
        for offsets in ([0], [0, 1], [0, 2], [2]):
            for epoch in (first, first - 1, 0):
                request = commit(
                    group.group, topic, *((number, 5) for number in offsets), version=version,
                    member="m1", generation=epoch,
                )  # fmt: skip
                run.send(request, version, f"partitions {offsets} at epoch {epoch}")
    group.beat("m2", "m2 has its part")
    request = commit(group.group, topic, (2, 5), member="m2", generation=first)
    run.send(request, 9, "before m2 had it")
