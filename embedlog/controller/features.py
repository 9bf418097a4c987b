"""The features of the cluster (KIP-584): supported levels, and rules for changing them.

A level selects the behaviour of the cluster, whatever its software supports. At level 0 a feature
is off, and ApiVersions does not list it as finalized. UpdateFeatures changes all levels of a
request or none.
"""

from __future__ import annotations

from embedlog import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Final

UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
UNSAFE_DOWNGRADE: Final = 3

ELIGIBLE_LEADER_REPLICAS: Final = "eligible.leader.replicas.version"
GROUP: Final = "group.version"
METADATA: Final = "metadata.version"
SHARE: Final = "share.version"
STREAMS: Final = "streams.version"
TRANSACTION: Final = "transaction.version"

SUPPORTED: dict[str, tuple[int, int]] = {
    GROUP: (0, 1),
    "kraft.version": (0, 1),
    METADATA: (7, 33),
    TRANSACTION: (0, 2),
    SHARE: (0, 2),
    STREAMS: (0, 1),
    ELIGIBLE_LEADER_REPLICAS: (0, 1),
}
"""Name -> (lowest, highest level), as in Kafka 4.4."""

FIRST_LEVELS: dict[str, int] = {
    GROUP: 1,
    METADATA: 33,
    TRANSACTION: 2,
    SHARE: 2,
    STREAMS: 1,
    ELIGIBLE_LEADER_REPLICAS: 1,
}
"""The levels of a log without feature records. Never change a level here: write feature records
into new logs instead. Older logs may have records of features that are not supported."""


def changed_levels(
    present: Mapping[str, int], updates: Sequence[tuple[str, int, int]], node_id: int
) -> dict[str, int]:
    """Return the changed levels of (name, level, kind of update); a name's last update counts.

    Raises:
        InvalidUpdateVersion: one update is invalid, so all fail; the first one by name is reported.
    """
    wanted = {name: (level, kind) for name, level, kind in updates}
    for name, (level, kind) in sorted(wanted.items()):
        reason = _refusal(present.get(name, 0), name, level, kind, node_id)
        if reason:
            raise errors.InvalidUpdateVersion(
                "The update failed for all features since the following feature had an error:"
                f" {reason}"
            )
    return {name: level for name, (level, _) in wanted.items() if level != present.get(name, 0)}


def _refusal(present: int, name: str, level: int, kind: int, node_id: int) -> str:
    """Return why the feature cannot have this level; empty if it can."""
    reason = ""
    if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        reason = "The controller does not support the given upgrade type."
    elif level < 0:
        reason = "A feature version cannot be less than 0."
    elif name not in SUPPORTED:
        reason = f"Local controller {node_id} does not support this feature."
        if level == 0:
            reason = f"Feature {name} not found."
    elif not SUPPORTED[name][0] <= level <= SUPPORTED[name][1]:
        lowest, highest = SUPPORTED[name]
        reason = f"Local controller {node_id} only supports versions {lowest}-{highest}"
    elif level < present and kind == UPGRADE:
        reason = (
            "Can't downgrade the version of this feature without setting the upgrade type to"
            " either safe or unsafe downgrade."
        )
    elif level > present and kind != UPGRADE:
        reason = "Can't downgrade to a newer version."
    if reason:
        return f"Invalid update version {level} for feature {name}. {reason}"
    if name == METADATA and level < present:
        reason = "Unsafe metadata downgrade is not supported in this version."
        if kind == SAFE_DOWNGRADE:
            reason = (
                "Refusing to perform the requested downgrade because it might delete metadata"
                " information."
            )
        return f"Unsupported metadata.version downgrade from {present} to {level}. {reason}"
    return ""
