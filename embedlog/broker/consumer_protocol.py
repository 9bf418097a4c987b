"""Whether members of groups may use the protocol of KIP-848."""

from __future__ import annotations

from embedlog.controller import features

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.config import BrokerConfig
    from embedlog.controller.metadata import MetadataImage


def is_served(image: MetadataImage, config: BrokerConfig) -> bool:
    """Both the level of the cluster's feature and the broker's setting must allow it."""
    is_on = image.feature_level(features.GROUP) > 0
    return is_on and "consumer" in config.group_coordinator_rebalance_protocols
