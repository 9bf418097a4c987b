"""The admin client's calls about settings of topics, brokers and groups."""

from __future__ import annotations

from embedlog.client.admin.part import AdminPart, in_turn, text
from embedlog.client.admin.results import (
    ConfigEntry,
    ConfigResource,
    ItemResults,
    ResourceType,
)
from embedlog.errors import KafkaError
from embedlog.transport import ANY_NODE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

_BROKER_RESOURCES = (ResourceType.BROKER, ResourceType.BROKER_LOGGER)


class ConfigAdmin(AdminPart):
    """Describes and changes settings."""

    @in_turn
    def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        names: Sequence[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout_ms: int | None = None,
    ) -> ItemResults[ConfigResource, dict[str, ConfigEntry]]:
        """The settings of topics, brokers, ...; `names` chooses some, else all."""
        from wire.schemas.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

        results: ItemResults[ConfigResource, dict[str, ConfigEntry]] = ItemResults()
        for node_id, wanted in _by_node(resources).items():
            request = DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(
                        resource_type=each.resource_type,
                        resource_name=each.name,
                        configuration_keys=None if names is None else list(names),
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
        """Change single settings: {resource: {name: (AlterOperation, value)}}; others stay."""
        from wire.schemas.incremental_alter_configs import (
            AlterableConfig,
            AlterConfigsResource,
            IncrementalAlterConfigsRequest,
        )

        results: ItemResults[ConfigResource, None] = ItemResults()
        for node_id, wanted in _by_node(changes).items():
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
        """Replace all settings of resources: what is not named goes back to its default."""
        from wire.schemas.alter_configs import (
            AlterableConfig,
            AlterConfigsRequest,
            AlterConfigsResource,
        )

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
        request: Any,
        wanted: list[ConfigResource],
        results: ItemResults[ConfigResource, Any],
        timeout_ms: int | None,
    ) -> Any:
        """A broker's response; or None, when its error has become that of all it was asked."""
        try:
            return self._calls.call(node_id, request, timeout_ms)
        except KafkaError as error:
            results.errors.update(dict.fromkeys(wanted, error))
            return None


def _put_altered(results: ItemResults[ConfigResource, None], response: Any) -> None:
    for answer in [] if response is None else response.responses:
        resource = ConfigResource(answer.resource_type, answer.resource_name)
        results.put(resource, None, answer.error_code, answer.error_message)


def _by_node(resources: Iterable[ConfigResource]) -> dict[int, list[ConfigResource]]:
    """A broker's own settings are asked of that broker, everything else of any."""
    by_node: dict[int, list[ConfigResource]] = {}
    for each in resources:
        # Of a name that is no number any broker says so.
        owned = each.resource_type in _BROKER_RESOURCES and each.name.isdecimal()
        by_node.setdefault(int(each.name) if owned else ANY_NODE, []).append(each)
    return by_node


def _config_entry(config: Any) -> ConfigEntry:
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
