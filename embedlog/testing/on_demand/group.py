"""`Group`: a test's handle of one group, to look at it and to change it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from embedlog.common import TopicPartition
from embedlog.config.definitions import GROUP as SETTINGS
from embedlog.errors import ConfigError, GroupIdNotFound, UnknownMemberId, error_for
from embedlog.testing.inspection.brokers import Brokers
from embedlog.testing.inspection.group_values import GroupMember, GroupValue, shown
from embedlog.testing.inspection.groups import read_group, read_groups
from embedlog.testing.names import check_settings, hint
from embedlog.testing.on_demand import group_changes
from embedlog.testing.on_demand.pins import Pin, Pins
from wire.schemas.delete_groups import DeletableGroupResult
from wire.schemas.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

_GROUP_RESOURCE = 32
_SET, _DELETE = 0, 1
_PREFIX = "consumer."
_CLASSIC = "classic"


class Group:
    """One group, of either protocol. Each property is read when it is used, and is a copy.

    >>> from embedlog.testing import Kafka
    >>> with Kafka(topics={"orders": 1}) as kafka:
    ...     group = kafka.group("billing")
    ...     group.commit({("orders", 0): 5})
    ...     print(group)
    group 'billing': Empty, classic, generation 0, 0 members, 0 partitions assigned
      orders-0: committed 5, lag 0
    """

    def __init__(self, brokers: Brokers, pins: Pins, group_id: str) -> None:
        if not isinstance(group_id, str) or not group_id:
            raise ConfigError(f"group {group_id!r}: expected the name of a group")
        self.group_id = group_id
        self._brokers = brokers
        self._pins = pins

    # Values

    @property
    def value(self) -> GroupValue:
        """Everything about the group at one moment."""
        return read_group(self._brokers, self.group_id)

    @property
    def exists(self) -> bool:
        """Whether the group has members, had members, or has committed offsets."""
        return self.value.exists

    @property
    def state(self) -> str:
        """The state as Kafka spells it; "Dead" if the group does not exist."""
        return self.value.state

    @property
    def protocol(self) -> str:
        """ "classic" or "consumer" (KIP-848); "" if the group does not exist."""
        return self.value.protocol

    @property
    def members(self) -> tuple[GroupMember, ...]:
        """The members, in the order of joining."""
        return self.value.members

    @property
    def epoch(self) -> int:
        """The group epoch, or a classic group's generation; -1 if the group does not exist."""
        return self.value.epoch

    @property
    def generation(self) -> int:
        """The same as `epoch`."""
        return self.value.epoch

    @property
    def committed(self) -> dict[TopicPartition, int]:
        """The committed offsets."""
        return dict(self.value.committed)

    @property
    def lag(self) -> int:
        """The number of records that the group has not committed: the sum of `lags`."""
        return self.value.lag

    @property
    def lags(self) -> dict[TopicPartition, int]:
        """The lag of each partition that the group has committed or that a member has."""
        return dict(self.value.lags)

    # Changes

    def rebalance(self) -> int:
        """Begin a rebalance; return the generation or epoch before it.

        Members of a classic group get REBALANCE_IN_PROGRESS in answer to their next heartbeats. A
        group of KIP-848 gets a new target assignment with a new epoch.

        Raises:
            GroupIdNotFound: there is no such group.
            IllegalState: the group has no members.
        """
        self._check_exists()
        before: int = self._write(lambda shard: group_changes.rebalance(shard, self.group_id))
        return before

    def expel(self, member: str) -> None:
        """Remove a member, named by its member id, instance id or client id.

        The member learns it from its next request, as after the end of its session, and joins
        again.

        Raises:
            UnknownMemberId: no member, or more than one, has that name.
        """
        value = self._check_exists()
        found = _member(value, member)
        self._write(lambda shard: group_changes.expel(shard, self.group_id, found))

    def assign(self, partitions: Mapping[str, Iterable[tuple[str, int]]] | None) -> None:
        """Pin the assignment: member -> its partitions. None ends the pin. The group rebalances.

        Members are named by member id, instance id or client id; members without a name get
        nothing. A group without members may have names of members to come.

        >>> from embedlog.testing import Kafka
        >>> with Kafka(topics={"orders": 2}) as kafka:
        ...     kafka.group("billing").assign({"worker-1": [("orders", 0), ("orders", 1)]})

        Raises:
            UnknownMemberId: no member, or more than one, has one of the names.
            UnknownTopicOrPartition: there is no such partition.
            ConfigError: two members get the same partition.
        """
        value = self.value
        pin = None if partitions is None else Pin(self._checked(value, partitions))
        self._pins.put(self.group_id, pin, self._brokers.running())
        if value.members:
            self._write(lambda shard: group_changes.rebalance(shard, self.group_id))

    def configure(self, **settings: Any) -> None:
        """Change the group's own settings; None removes one. They are for groups of KIP-848.

        >>> from embedlog.testing import Kafka
        >>> with Kafka() as kafka:
        ...     kafka.group("billing").configure(session_timeout_ms=50_000)

        Raises:
            ConfigError: a setting is unknown, or the group is a classic one, whose members have
                settings of their own.
            InvalidConfig: a value is outside the bounds of the broker, such as
                group.consumer.min.session.timeout.ms.
        """
        given = check_settings("configure", settings, _settings())
        if self.value.protocol == _CLASSIC and self.value.members:
            raise ConfigError(
                f"group {self.group_id!r} is a classic one: its members choose their time-outs"
            )
        configs = [
            AlterableConfig(
                name=name,
                config_operation=_DELETE if value is None else _SET,
                value=None if value is None else str(value),
            )
            for name, value in given.items()
        ]
        resource = AlterConfigsResource(
            resource_type=_GROUP_RESOURCE, resource_name=self.group_id, configs=configs
        )
        request = IncrementalAlterConfigsRequest(resources=[resource])
        (answer,) = self._brokers.ask(request).responses
        if answer.error_code:
            raise error_for(answer.error_code, answer.error_message)

    def commit(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit offsets for the group, whether or not it has members; it is made if necessary.

        Raises:
            UnknownTopicOrPartition: there is no such partition.
            ConfigError: an offset is no number from 0 on.
        """
        checked = {
            self._brokers.check_partition(*place): check_offset(place, offset)
            for place, offset in offsets.items()
        }
        self._write(lambda shard: group_changes.commit(shard, self.group_id, checked))

    def delete(self) -> None:
        """Delete the group and its offsets.

        Raises:
            GroupIdNotFound: there is no such group.
            NonEmptyGroup: the group has members.
        """
        self._check_exists()
        answer = DeletableGroupResult(group_id=self.group_id)
        self._write(lambda shard: shard.delete_group(self.group_id, answer))

    def _write(self, operation: Any) -> Any:
        return self._brokers.write_group(self.group_id, operation)

    def _check_exists(self) -> GroupValue:
        value = self.value
        if not value.exists:
            names = [each.group_id for each in read_groups(self._brokers)]
            raise GroupIdNotFound(
                f"there is no group {self.group_id!r}; {hint(self.group_id, names)}"
            )
        return value

    def _checked(
        self, value: GroupValue, wanted: Mapping[str, Iterable[tuple[str, int]]]
    ) -> dict[str, tuple[TopicPartition, ...]]:
        owners: dict[TopicPartition, str] = {}
        found = {}
        for name, places in wanted.items():
            if value.members:
                _member(value, name)
            share = tuple(self._brokers.check_partition(*place) for place in places)
            for place in share:
                if place in owners:
                    raise ConfigError(
                        f"assign: {shown(place)} is given to {owners[place]!r} and to {name!r}"
                    )
                owners[place] = name
            found[name] = share
        return found

    def __repr__(self) -> str:
        return f"<Group {self.group_id!r}>"

    def __str__(self) -> str:
        return str(self.value)


def check_offset(place: object, offset: object) -> int:
    """Return the offset. Raise ConfigError unless it is a number from 0 on."""
    if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
        raise ConfigError(f"offset {offset!r} of {place}: expected a number from 0 on")
    return offset


def _member(value: GroupValue, name: str) -> GroupMember:
    """Return the member with that member id, instance id or client id."""
    for key in ("member_id", "instance_id", "client_id"):
        found = [each for each in value.members if getattr(each, key) == name]
        if len(found) > 1:
            ids = ", ".join(repr(each.member_id) for each in found)
            raise UnknownMemberId(
                f"{len(found)} members of group {value.group_id!r} have the client id {name!r}; "
                f"their member ids are {ids}"
            )
        if found:
            return found[0]
    known = [each for member in value.members for each in member.names()]
    raise UnknownMemberId(
        f"group {value.group_id!r} has no member {name!r}; {hint(name, dict.fromkeys(known))}"
    )


def _settings() -> dict[str, str]:
    """Return the short names of the settings of groups, and the full ones."""
    names = list(SETTINGS.names())
    known = {name.replace(".", "_"): name for name in names}
    for name in names:
        if name.startswith(_PREFIX):
            known[name.removeprefix(_PREFIX).replace(".", "_")] = name
    return known
