"""UpdateFeatures, ApiVersions after it, and transactions at each level."""

from __future__ import annotations

from tests.golden.group_requests import commit as offset_commit
from tests.golden.group_requests import describe_consumers
from tests.golden.requests import Topic, make_offsets_topic, make_topic, produce
from tests.golden.run import Run, scenario_on
from tests.golden.scenarios.configs import (
    BROKER,
    DELETE,
    SET,
    TOPIC,
    described,
    incremental,
)
from tests.golden.transaction_requests import (
    add,
    add_offsets,
    batch,
    end,
    init,
    markers,
    owned,
    settle,
    txn_commit,
    warm_up_transactions,
)
from wire.schemas.api_versions import ApiVersionsRequest
from wire.schemas.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from wire.schemas.update_features import FeatureUpdateKey, UpdateFeaturesRequest

UPGRADE, SAFE, UNSAFE = 1, 2, 3


def update(
    *levels: tuple[str, int], kind: int = UPGRADE, validate_only: bool = False
) -> UpdateFeaturesRequest:
    """UpdateFeatures of versions 1 and 2."""
    return UpdateFeaturesRequest(
        feature_updates=[
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
            for name, level in levels
        ],
        validate_only=validate_only,
    )


def update_v0(*levels: tuple[str, int], downgrade: bool = False) -> UpdateFeaturesRequest:
    """UpdateFeatures of version 0."""
    return UpdateFeaturesRequest(
        feature_updates=[
            FeatureUpdateKey(feature=name, max_version_level=level, allow_downgrade=downgrade)
            for name, level in levels
        ],
    )


def _levels(run: Run, note: str) -> None:
    answer = run.setup(
        ApiVersionsRequest(client_software_name="golden", client_software_version="1"), 4
    )
    found = {each.name: each.max_version_level for each in answer.finalized_features}
    run.keep(note, dict(sorted(found.items())))


@scenario_on("features")
def feature_updates(run: Run) -> None:
    for version in (0, 1, 2):
        run.send(UpdateFeaturesRequest(), version, "nothing")
    for version in (1, 2):
        for kind in (0, UPGRADE, SAFE, UNSAFE, 4, -1):
            for level in (-1, 0, 1, 2, 3):
                request = update(("transaction.version", level), kind=kind, validate_only=True)
                run.send(request, version, f"only validated: {level}, type {kind}")
    for name, level in (
        ("nobody.version", 0),
        ("nobody.version", 1),
        ("", 1),
        ("group.version", 1),
        ("group.version", 2),
        ("share.version", 3),
        ("streams.version", 2),
        ("streams.version", 1),
        ("kraft.version", 0),
        ("kraft.version", 1),
        ("kraft.version", 2),
        ("eligible.leader.replicas.version", 1),
        ("eligible.leader.replicas.version", 2),
        ("metadata.version", 0),
        ("metadata.version", 6),
        ("metadata.version", 7),
        ("metadata.version", 32),
        ("metadata.version", 33),
        ("metadata.version", 34),
        ("metadata.version", 99),
    ):
        for kind in (UPGRADE, SAFE, UNSAFE):
            request = update((name, level), kind=kind, validate_only=True)
            run.send(request, 2, f"only validated: {name!r} {level}, type {kind}")
    _levels(run, "nothing changed")


@scenario_on("features")
def features_changed(run: Run) -> None:
    both = (("transaction.version", 1), ("group.version", 0))
    run.send(update(*both), 2, "down without saying so")
    run.send(update(*both, kind=SAFE), 2, "two at once")
    _levels(run, "two are lower")
    run.send(update(("transaction.version", 2), ("group.version", 1)), 1, "and back")
    _levels(run, "and back")
    for version in (1, 2):
        one_wrong = (("transaction.version", 1), ("nobody.version", 1))
        run.send(update(*one_wrong, kind=SAFE), version, "one of two is wrong")
        _levels(run, "nothing changed")
        twice = (("transaction.version", 1), ("transaction.version", 0))
        run.send(update(*twice, kind=SAFE), version, "the same twice")
        _levels(run, "the same twice")
        run.send(update(("transaction.version", 2)), version, "as it was")
    for level in (0, 1, 2):
        run.send(update_v0(("transaction.version", level)), 0, f"version 0: to {level}")
        run.send(update_v0(("transaction.version", level), downgrade=True), 0, f"down to {level}")
        _levels(run, f"version 0, {level}")
    run.send(update_v0(("transaction.version", 2)), 0, "version 0: back")
    run.send(update_v0(("nobody.version", 2)), 0, "version 0: unknown")
    run.send(update(("transaction.version", 0), kind=UNSAFE), 2, "unsafe, and lossless")
    _levels(run, "unsafe")
    run.send(update(("transaction.version", 2)), 2, "back")
    for name in ("streams.version", "share.version", "eligible.leader.replicas.version"):
        run.send(update((name, 0), kind=SAFE), 2, f"{name} off")
    _levels(run, "three are off")
    run.send(update(("streams.version", 1)), 2, "streams.version on")
    run.send(update(("share.version", 2)), 2, "share.version on")
    run.send(update(("eligible.leader.replicas.version", 1)), 2, "on")
    _levels(run, "three are on")


@scenario_on("features")
def transactions_at_each_level(run: Run) -> None:
    warm_up_transactions(run)
    for level in (0, 1, 2):
        if level < 2:
            run.send(update(("transaction.version", level), kind=SAFE), 2, f"level {level}")
        else:
            run.send(update(("transaction.version", level)), 2, f"level {level}")
        topic = make_topic(run, f"at{level}")
        for version in (3, 4, 5) if level else (3, 4):
            for commits in (True, False):
                _ended(run, topic, f"{level}-{version}", version, commit=commits)
        if level:
            _not_registered(run, topic, level)
        run.setup(update(("transaction.version", 2)), 2)


def _ended(run: Run, topic: Topic, where: str, version: int, *, commit: bool) -> None:
    name, group = run.group(f"{where}-{commit}"), run.group(where)
    note = f"level and EndTxn {where}, commit={commit}"
    producer = owned(run, name)
    run.send(add(name, producer, (topic, 0)), 3, note)
    request = produce(topic, 11, batch(producer, b"a"), transactional_id=name)
    run.send(request, 11, note)
    run.send(add_offsets(name, producer, group), 4, note)
    run.send(txn_commit(name, producer, group, topic, (0, 1)), 4, note)
    answer = run.send(end(name, producer, commit=commit), version, note)
    settle(run, name)
    run.send(end(name, producer, commit=commit), version, f"{note}, again")
    if version >= 5:
        now = (answer.producer_id, answer.producer_epoch)
        run.send(end(name, now, commit=not commit), version, f"{note}, an empty one")
        settle(run, name)
    run.send(init(name), 5, f"{note}, another comes")
    run.send(end(name, producer, commit=commit), version, f"{note}, fenced")


def _not_registered(run: Run, topic: Topic, level: int) -> None:
    name, group = run.group(f"{level}-implicit"), run.group(f"{level}")
    producer = owned(run, name)
    note = f"level {level}, not registered"
    for version in (11, 12):
        request = produce(topic, version, batch(producer, b"a"), transactional_id=name)
        run.send(request, version, note)
    run.send(txn_commit(name, producer, group, topic, (0, 1)), 5, note)
    run.send(end(name, producer), 5, note)
    settle(run, name)
    for marker_level in (0, 1, 2):
        request = markers(producer, (topic, 0), transaction_version=marker_level)
        run.send(request, 2, f"level {level}, marker of {marker_level}")


@scenario_on("features")
def clients_above_the_level(run: Run) -> None:
    warm_up_transactions(run)
    topic, group = make_topic(run), run.group()
    run.setup(update(("transaction.version", 0), kind=SAFE), 2)
    name = run.group("end")
    producer = owned(run, name)
    run.send(add(name, producer, (make_topic(run, "end"), 0)), 3)
    run.send(end(name, producer), 5)
    name = run.group("produce")
    producer = owned(run, name)
    request = produce(topic, 12, batch(producer, b"a"), transactional_id=name)
    run.send(request, 12)
    name = run.group("offsets")
    producer = owned(run, name)
    run.send(txn_commit(name, producer, group, topic, (0, 1)), 5)
    run.setup(update(("transaction.version", 2)), 2)


@scenario_on("features")
def features_with_a_deadline(run: Run) -> None:
    for timeout_ms in (-1, 0, 1, 60_000):
        request = update(("transaction.version", 1), kind=SAFE)
        request.timeout_ms = timeout_ms
        run.send(request, 2, f"{timeout_ms} ms")
        _levels(run, f"{timeout_ms} ms")
        run.setup(update(("transaction.version", 2)), 2)


@scenario_on("features")
def groups_without_their_feature(run: Run) -> None:
    make_offsets_topic(run)
    topic, _ = make_topic(run)
    group, member = run.group(), "AAAAAAAAAAAAAAAAAAAAAA"
    joins = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )
    run.send(joins, 1, "on")
    stays = ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=1)
    for level in (0, 1):
        run.setup(update(("group.version", level), kind=UPGRADE if level else SAFE), 2)
        run.send(stays, 1, f"level {level}, a member goes on")
        joins.group_id = run.group(f"new{level}")
        run.send(joins, 1, f"level {level}, a new group")
        run.send(describe_consumers(group), 1, f"level {level}")
        run.send(
            offset_commit(group, topic, (0, 1), member=member, generation=1), 9, f"level {level}"
        )


@scenario_on("features")
def eligible_replicas_off(run: Run) -> None:
    name, _ = make_topic(run)
    for level in (1, 0, 1):
        kind = UPGRADE if level else SAFE
        run.setup(update(("eligible.leader.replicas.version", level), kind=kind), 2)
        for resource_type, resource in ((BROKER, "1"), (BROKER, ""), (TOPIC, name)):
            for operation, value in ((SET, "2"), (DELETE, None)):
                note = f"level {level}, {resource_type} {resource!r}, {value}"
                row = ("min.insync.replicas", operation, value)
                run.send(incremental(resource_type, resource, row), 1, note)
                keys = ["min.insync.replicas"]
                run.send(described((TOPIC, name), keys=keys, synonyms=True), 4, note)
    run.setup(incremental(BROKER, "", ("min.insync.replicas", SET, "1")), 1)
