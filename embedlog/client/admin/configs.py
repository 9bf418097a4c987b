"""Admin calls about the settings of topics, brokers and groups."""

from __future__ import annotations

from embedlog import errors
from embedlog.client import arguments
from embedlog.client.admin.part import AdminPart, in_turn
from embedlog.client.admin.results import (
    AlterOperation,
    ConfigEntry,
    ConfigResource,
    ItemResults,
    ResourceType,
)
from embedlog.client.arguments import setting_text as text
from embedlog.errors import KafkaError
from embedlog.transport import ANY_NODE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, TypeVar

    from wire.schema import R, Request
    from wire.schemas.alter_configs import AlterConfigsResponse
    from wire.schemas.describe_configs import DescribeConfigsResourceResult
    from wire.schemas.incremental_alter_configs import IncrementalAlterConfigsResponse

    V = TypeVar("V")

_OPERATIONS = {
    AlterOperation.SET: "SET",
    AlterOperation.DELETE: "DELETE",
    AlterOperation.APPEND: "APPEND",
    AlterOperation.SUBTRACT: "SUBTRACT",
}
_OPERATION_AND_VALUE = 2
_BROKER_RESOURCES = (ResourceType.BROKER, ResourceType.BROKER_LOGGER)


class ConfigAdmin(AdminPart):
    """Describes and changes settings."""

    @in_turn
    def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        names: Iterable[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout_ms: int | None = None,
    ) -> ItemResults[ConfigResource, dict[str, ConfigEntry]]:
        """Return the settings of resources; with `names`, only the settings of these names."""
        from wire.schemas.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

        resources = _resources(resources, "describe_configs", "resources")
        if names is not None:
            names = arguments.names(names, "describe_configs", "names", what="setting names")
        results: ItemResults[ConfigResource, dict[str, ConfigEntry]] = ItemResults()
        for node_id, wanted in _by_node(resources).items():
            request = DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(
                        resource_type=each.resource_type,
                        resource_name=each.name,
                        configuration_keys=names,
                    )
                    for each in wanted
                ],
                include_synonyms=include_synonyms,
                include_documentation=include_documentation,
            )
            response = self._ask(node_id, request, wanted, results, timeout_ms)
            for described in [] if response is None else response.results:
                resource = ConfigResource(described.resource_type, described.resource_name)
                entries = {config.name: _config_entry(config) for config in described.configs}
                results.put(resource, entries, described.error_code, described.error_message)
        return results

    @in_turn
    def incremental_alter_configs(
        self,
        changes: Mapping[ConfigResource, Mapping[str, tuple[int, Any]]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> ItemResults[ConfigResource, None]:
        """Change single settings: {resource: {name: (AlterOperation, value)}}.

        Other settings stay. A value that is no str is converted to Kafka's text for it. A resource
        with an unknown operation gets the error InvalidConfig.
        """
        from wire.schemas.incremental_alter_configs import (
            AlterableConfig,
            AlterConfigsResource,
            IncrementalAlterConfigsRequest,
        )

        _check_changes(changes)
        results: ItemResults[ConfigResource, None] = ItemResults()
        for resource, settings in changes.items():
            error = _operation_error(settings)
            if error is not None:
                results.failures[resource] = error
        sound = [resource for resource in changes if resource not in results.failures]
        for node_id, wanted in _by_node(sound).items():
            request = IncrementalAlterConfigsRequest(
                resources=[
                    AlterConfigsResource(
                        resource_type=each.resource_type,
                        resource_name=each.name,
                        configs=[
                            AlterableConfig(name=name, config_operation=op, value=text(value))
                            for name, (op, value) in changes[each].items()
                        ],
                    )
                    for each in wanted
                ],
                validate_only=validate_only,
            )
            response = self._ask(node_id, request, wanted, results, timeout_ms)
            _put_altered(results, response)
        return results

    @in_turn
    def alter_configs(
        self,
        configs: Mapping[ConfigResource, Mapping[str, Any]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> ItemResults[ConfigResource, None]:
        """Replace all settings of resources: settings that are not named get their defaults."""
        from wire.schemas.alter_configs import (
            AlterableConfig,
            AlterConfigsRequest,
            AlterConfigsResource,
        )

        _settings_by_resource(configs, "alter_configs", "configs", "name: value")
        results: ItemResults[ConfigResource, None] = ItemResults()
        for node_id, wanted in _by_node(configs).items():
            request = AlterConfigsRequest(
                resources=[
                    AlterConfigsResource(
                        resource_type=each.resource_type,
                        resource_name=each.name,
                        configs=[
                            AlterableConfig(name=name, value=text(value))
                            for name, value in configs[each].items()
                        ],
                    )
                    for each in wanted
                ],
                validate_only=validate_only,
            )
            response = self._ask(node_id, request, wanted, results, timeout_ms)
            _put_altered(results, response)
        return results

    def _ask(
        self,
        node_id: int,
        request: Request[R],
        wanted: list[ConfigResource],
        results: ItemResults[ConfigResource, V],
        timeout_ms: int | None,
    ) -> R | None:
        """Return a broker's response.

        If the call fails, store the error for all resources in `wanted` and return None.
        """
        try:
            return self._calls.call(node_id, request, timeout_ms)
        except KafkaError as error:
            results.failures.update(dict.fromkeys(wanted, error))
            return None


def _put_altered(
    results: ItemResults[ConfigResource, None],
    response: AlterConfigsResponse | IncrementalAlterConfigsResponse | None,
) -> None:
    for answer in [] if response is None else response.responses:
        resource = ConfigResource(answer.resource_type, answer.resource_name)
        results.put(resource, None, answer.error_code, answer.error_message)


def _resources(given: Any, call: str, argument: str) -> list[ConfigResource]:
    kinds = (ConfigResource,)
    return arguments.names(given, call, argument, what="ConfigResource", kinds=kinds)


def _settings_by_resource(given: Any, call: str, argument: str, what: str) -> None:
    arguments.mapping(given, call, argument, f"ConfigResource: {{{what}}}")
    for resource in _resources(given, call, argument):
        where = f"{argument}: {resource}"
        settings = arguments.mapping(given[resource], call, where, what)
        arguments.names(settings, call, where, what="setting names")


def _check_changes(given: Any) -> None:
    call, what = "incremental_alter_configs", "name: (AlterOperation, value)"
    _settings_by_resource(given, call, "changes", what)
    for settings in given.values():
        for name, change in settings.items():
            if not isinstance(change, tuple | list) or len(change) != _OPERATION_AND_VALUE:
                raise arguments.WrongType(
                    f"{call}(changes: {name}={arguments.shown(change)}): expected "
                    f"(AlterOperation, value), got {type(change).__name__}"
                )


def _operation_error(settings: Mapping[str, Any]) -> KafkaError | None:
    """Return an error if an operation on the resource is unknown, else None.

    Without this check Kafka's brokers would answer UnknownServerError, with no explanation.
    """
    for name, (operation, _) in settings.items():
        if type(operation) is not int or operation not in _OPERATIONS:
            known = ", ".join(f"AlterOperation.{each}" for each in _OPERATIONS.values())
            text = f"{name}: {operation!r} is no operation on a setting: use one of {known}"
            return errors.InvalidConfig(text)
    return None


def _by_node(resources: Iterable[ConfigResource]) -> dict[int, list[ConfigResource]]:
    """Group resources by the broker that gets the request.

    A broker gets requests about its own settings; any broker gets requests about other resources.
    """
    by_node: dict[int, list[ConfigResource]] = {}
    for each in resources:
        # If the name is no number, any broker refuses it.
        owned = each.resource_type in _BROKER_RESOURCES and each.name.isdecimal()
        by_node.setdefault(int(each.name) if owned else ANY_NODE, []).append(each)
    return by_node


def _config_entry(config: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        config.name,
        config.value,
        source=config.config_source,
        is_read_only=config.read_only,
        is_sensitive=config.is_sensitive,
        synonyms=tuple([(each.name, each.value, each.source) for each in config.synonyms]),
        config_type=config.config_type,
        documentation=config.documentation,
    )
