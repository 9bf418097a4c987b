"""Changes of settings: the operations of IncrementalAlterConfigs, and validation.

Codes and messages are Kafka's; they differ between kinds of resources, because Kafka checks each
kind in another place.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.config import BrokerConfig, resources, topic_config, types
from embedlog.config.cordons import CORDONED, check_cordoned
from embedlog.config.definitions import BROKER, TOPIC, Definitions
from embedlog.controller import features, topic_names
from embedlog.controller.metadata import (
    RESOURCE_BROKER,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
    RESOURCE_TOPIC,
    MetadataImage,
)
from embedlog.errors import ConfigError, KafkaError
from embedlog.storage.paths import broker_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    Change = tuple[int, str, str | None]
    """Operation, name, value."""
    Texts = Mapping[str, str]

SET = 0
DELETE = 1
APPEND = 2
SUBTRACT = 3


_WITH_LISTS: dict[int, Definitions] = {RESOURCE_TOPIC: TOPIC, RESOURCE_BROKER: BROKER}
"""The resource types whose settings take list operations; groups and subscriptions take none."""
_LIST_OPERATIONS = {APPEND: "APPEND", SUBTRACT: "SUBTRACT"}
MIN_ISR = "min.insync.replicas"
UNCLEAN_ELECTIONS = "unclean.leader.election.enable"


def apply(resource_type: int, before: Texts, changes: Sequence[Change]) -> dict[str, str]:
    """Return the settings after the changes; check only the operations themselves.

    Raises:
        InvalidRequest: a repeated key, or a null in an operation other than a deletion.
        InvalidConfig: a list operation on a setting that is no list.
        UnknownServerError: an unknown operation.
    """
    refuse_duplicates(name for _, name, _ in changes)
    refuse_nulls(changes)
    if any(operation not in (SET, DELETE, APPEND, SUBTRACT) for operation, _, _ in changes):
        raise errors.UnknownServerError()
    after = dict(before)
    for operation, name, value in changes:
        if operation == DELETE:
            after.pop(name, None)
            continue
        assert value is not None, name
        if operation in _LIST_OPERATIONS:
            value = _change_list(resource_type, operation, name, after.get(name), value)
        after[name] = value
    return after


def replacement(configs: Sequence[tuple[str, str | None]]) -> dict[str, str]:
    """Return the settings of AlterConfigs. Raise InvalidRequest for nulls and repeats."""
    refuse_duplicates(name for name, _ in configs)
    nulls = [name for name, value in configs if value is None]
    if nulls:
        raise errors.InvalidRequest(f"Null value not supported for : {','.join(nulls)}")
    return {name: value for name, value in configs if value is not None}


def validate(
    image: MetadataImage,
    config: BrokerConfig,
    resource_type: int,
    resource_name: str,
    *,
    before: Texts,
    after: Texts,
    named: Collection[str],
) -> None:
    """Check the resource itself, and its settings, as Kafka does.

    `named` are the settings that the request names, changed or not.

    Raises:
        InvalidRequest, InvalidConfig, InvalidTopic, UnknownTopicOrPartition
        BrokerIdNotRegistered: the resource is an unknown broker of a cluster of several.
    """
    if resource_type == RESOURCE_TOPIC:
        _validate_topic(image, config, resource_name, after)
    elif resource_type == RESOURCE_BROKER:
        _validate_broker(image, config, resource_name, before=before, after=after, named=named)
    elif resource_type == RESOURCE_GROUP:
        if not resource_name:
            raise errors.InvalidRequest("Default group resources are not allowed.")
        resources.validate_group(after, config)
    else:
        assert resource_type == RESOURCE_CLIENT_METRICS, resource_type
        if not resource_name:
            raise errors.InvalidRequest("Subscription name can't be empty")
        resources.validate_client_metrics(after)


def refuse_duplicates(names: Iterable[str]) -> None:
    """Raise InvalidRequest for a repeated key."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise errors.InvalidRequest("Error due to duplicate config keys")
        seen.add(name)


def refuse_nulls(changes: Sequence[Change]) -> None:
    """Raise InvalidRequest for a null, unless the operation is a deletion."""
    nulls = [name for operation, name, value in changes if value is None and operation != DELETE]
    if nulls:
        raise errors.InvalidRequest(f"Null value not supported for : {','.join(nulls)}")


def one_min_isr(image: MetadataImage, config: BrokerConfig) -> dict[str, str | None]:
    """Return the changes of min.insync.replicas when eligible leader replicas are switched on.

    The setting becomes explicit for the cluster, and is removed from every broker (KIP-966).
    """
    changed: dict[str, str | None] = {
        resource: None
        for resource, texts in image.broker_configs.items()
        if resource and MIN_ISR in texts
    }
    if MIN_ISR not in image.broker_configs.get("", {}):
        changed[""] = str(config.with_dynamic({}, {}).min_insync_replicas)
    return changed


def _change_list(
    resource_type: int, operation: int, name: str, present: str | None, value: str
) -> str:
    definitions = _WITH_LISTS.get(resource_type)
    key = None if definitions is None else definitions.find(name)
    if key is None or key.type != types.LIST:
        verb = _LIST_OPERATIONS[operation]
        message = f"Can't {verb} to key {name} because its type is not LIST."
        if resource_type == RESOURCE_BROKER:
            message = f"Config value {verb.lower()} is not allowed for config key: {name}"
        raise errors.InvalidConfig(message)
    # As in Kafka, list operations start from the default if the resource has no list.
    text = present if present is not None else key.default or ""
    items = [item for item in text.split(",") if item]
    given = dict.fromkeys(item for item in value.split(",") if item)
    if operation == APPEND:
        present_items = set(items)
        items.extend(item for item in given if item not in present_items)
    else:
        items = [item for item in items if item not in given]
    return ",".join(items)


def _validate_topic(image: MetadataImage, config: BrokerConfig, name: str, after: Texts) -> None:
    if not name:
        raise errors.InvalidRequest("Default topic resources are not allowed.")
    topic_names.validate_name(name)
    if name not in image.topics_by_name:
        raise errors.UnknownTopicOrPartition(f"The topic '{name}' does not exist.")
    topic_config.validate(after, config)


def _validate_broker(
    image: MetadataImage,
    config: BrokerConfig,
    resource_name: str,
    *,
    before: Texts,
    after: Texts,
    named: Collection[str],
) -> None:
    _check_node(image, config, resource_name)
    if image.feature_level(features.ELIGIBLE_LEADER_REPLICAS):
        _check_min_isr(resource_name, before, after, named)
    changed = sorted(name for name, text in after.items() if before.get(name) != text)
    known = [key for name in changed if (key := BROKER.find(name)) is not None]
    fixed = [key.name for key in known if not key.is_dynamic]
    if fixed:
        raise _refuse(f"Cannot update these configs dynamically: [{', '.join(fixed)}]")
    security = [key.name for key in known if resources.is_per_listener(key.name)]
    if security:
        raise _refuse(
            "These security configs can be dynamically updated only per-listener using the"
            f" listener prefix: [{', '.join(security)}]"
        )
    if not resource_name:
        personal = [key.name for key in known if key.mode == "per-broker"]
        if personal:
            raise _refuse(
                "Cannot update these configs at default cluster level, broker id must be"
                f" specified: [{', '.join(personal)}]"
            )
    configs = {**image.broker_configs, resource_name: after}
    try:
        for key in known:
            key.parse(after[key.name])
        of_node = resource_name or str(config.node_id)
        config.with_dynamic(configs.get("", {}), configs.get(of_node, {})).check_together()
        if CORDONED in changed:
            _check_cordoned(image, config, resource_name, after[CORDONED])
    except ConfigError as error:
        raise _refuse(str(error)) from None


def _check_cordoned(
    image: MetadataImage, config: BrokerConfig, resource_name: str, text: str
) -> None:
    present: tuple[str, ...] = config.log_dirs or config.log_dir
    if not image.is_alone:
        present = tuple(broker_directory(path, int(resource_name)) for path in present)
    check_cordoned([item.strip() for item in text.split(",") if item], present)


def _check_node(image: MetadataImage, config: BrokerConfig, resource_name: str) -> None:
    if not resource_name:
        return
    digits = resource_name.removeprefix("-")
    if not (digits.isdigit() and digits.isascii()):
        raise _refuse(f"Node id must be an integer, but it is: {resource_name}")
    if not image.is_alone:
        if int(resource_name) not in image.brokers:
            raise errors.BrokerIdNotRegistered(f"No node with id {resource_name} found.")
        return
    if int(resource_name) != config.node_id:
        raise _refuse(
            f"Unexpected broker id, expected {config.node_id}, but received {resource_name}"
        )


def _check_min_isr(resource_name: str, before: Texts, after: Texts, named: Collection[str]) -> None:
    if resource_name and MIN_ISR in named:
        message = f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled."
    elif not resource_name and MIN_ISR in before and MIN_ISR not in after:
        message = f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled."
    else:
        return
    raise errors.InvalidConfig(message)


def _refuse(message: str) -> KafkaError:
    return errors.InvalidRequest(message)
