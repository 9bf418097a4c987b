"""`Persona`: one broker that a cluster can look like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from embedlog.broker.dispatch import VERSIONS
from embedlog.broker.narrowed_versions import narrowed
from embedlog.controller import features
from embedlog.testing.interception import PERSONA, Call, Proceed, Stages
from wire.api_keys import NAMES, ApiKey
from wire.schemas.api_versions import (
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from embedlog.cluster.cluster import Cluster

_GROUP_PROTOCOLS = "group.coordinator.rebalance.protocols"


class Persona:
    """A broker's name, versions and features."""

    def __init__(self, name: str, lines: Mapping[str, str]) -> None:
        """`lines` are the lines of the table: "apis", "features" and "finalized"."""
        self.name = name
        self.served = narrowed(lines["apis"].split(), VERSIONS)
        """API key -> first and last version that the cluster serves with this persona."""
        self.versions = dict(_versions(lines["apis"]))
        """Name of an API -> first and last version of the broker itself."""
        self.features = {
            name: levels
            for name, levels in _ranges(lines.get("features", ""))
            if name in features.SUPPORTED
        }
        """Feature -> lowest and highest level of the broker, without features that embedlog lacks.
        """
        self.levels = {
            name: int(level)
            for name, level in _pairs(lines.get("finalized", ""), "=")
            if name in features.SUPPORTED
        }
        """Feature -> finalized level; a feature at level 0 is missing."""

    @property
    def settings(self) -> dict[str, str]:
        """The broker settings that belong to the persona."""
        has_new_groups = self.levels.get(features.GROUP, 0) > 0
        return {} if has_new_groups else {_GROUP_PROTOCOLS: "classic"}

    def assume(self, cluster: Cluster, stages: Stages) -> None:
        """Let the cluster take the persona's feature levels, and show its features to clients.

        Levels of features that the cluster lacks are only shown. Requires: a new cluster with the
        persona's `settings` and versions.
        """
        controller = cluster.brokers[0].core.controller
        lower = [
            (name, level, features.SAFE_DOWNGRADE)
            for name, present in controller.image.feature_levels.items()
            if name != features.METADATA and (level := self.levels.get(name, 0)) < present
        ]
        controller.update_features(lower)
        stages.put(PERSONA, self._show)

    def _show(self, call: Call, proceed: Proceed) -> Any:
        answer = proceed(call)
        if call.context.api_key != ApiKey.API_VERSIONS or not isinstance(
            answer, ApiVersionsResponse
        ):
            return answer
        shows_zero = call.context.api_version >= _FIRST_WITH_ZERO_FEATURES
        return ApiVersionsResponse(
            error_code=answer.error_code,
            api_keys=answer.api_keys,
            throttle_time_ms=answer.throttle_time_ms,
            supported_features=[
                SupportedFeatureKey(name=name, min_version=low, max_version=high)
                for name, (low, high) in self.features.items()
                if low > 0 or shows_zero
            ],
            finalized_features_epoch=answer.finalized_features_epoch if self.levels else -1,
            finalized_features=[
                FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
                for name, level in self.levels.items()
            ],
        )


_FIRST_WITH_ZERO_FEATURES = 4


def _pairs(text: str, separator: str) -> Iterator[tuple[str, str]]:
    for each in text.split():
        name, _, value = each.partition(separator)
        yield name, value


def _ranges(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    for name, value in _pairs(text, ":"):
        first, _, last = value.partition("-")
        yield name, (int(first), int(last))


def _versions(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    for key, versions in _ranges(text):
        yield NAMES.get(int(key), key), versions
