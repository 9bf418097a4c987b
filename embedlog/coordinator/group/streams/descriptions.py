"""Descriptions of topologies (KIP-1331): a plugin keeps them, and the broker asks members for
them.

The setting `group.streams.topology.description.plugin.class` names the plugin as `module.Class`, a
Python class with three methods:

    set_topology(group_id, epoch, description)    keep a description, in place of earlier ones
    get_topology(group_id, epoch)                 return it; None if there is none
    delete_topology(group_id)                     forget it

A description is a `TopologyDescription` of `wire.schemas`, which the plugin must not change. Any
thread may call the methods. After an error of `set_topology` the broker asks members again later.
After `embedlog.errors.StreamsTopologyDescriptionUpdateFailed` it asks no member again for that
epoch of the topology.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.errors import ConfigError
from embedlog.logger import Logger
from embedlog.runtime.outer_call import as_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from embedlog.runtime.clock import Clock
    from embedlog.runtime.randomness import Random
    from wire.schemas.streams_group_topology_description_update import TopologyDescription

    class Plugin(Protocol):
        """The interface of a plugin: see the module."""

        def set_topology(self, group_id: str, epoch: int, description: TopologyDescription) -> None:
            """Keep a description."""

        def get_topology(self, group_id: str, epoch: int) -> TopologyDescription | None:
            """Return the description."""

        def delete_topology(self, group_id: str) -> None:
            """Forget the group."""


_FIRST_PAUSE_MS = 30_000
_PAUSE_MS_MAX = 3_600_000
_DOUBLINGS_MAX = 7
_PERMILLE_MIN, _PERMILLE_SPREAD = 800, 401
"""A pause is a fifth shorter or longer, by chance."""
_GROUPS_MAX = 10_000

_log = Logger("group")


class NodeType:
    """The types of a description's nodes."""

    SOURCE = 1
    PROCESSOR = 2
    SINK = 3


class PassingFailure(Exception):
    """The plugin failed for now; the text is the plugin's."""


class Descriptions:
    """One broker's plugin, and the pauses between requests for a group's description.

    Any thread may call the methods. Requires: no lock, because the plugin is the user's code.
    """

    def __init__(self, plugin: Plugin, clock: Clock, random: Random) -> None:
        self._plugin = plugin
        self._clock = clock
        self._random = random
        self._pauses: dict[str, tuple[int, int, int]] = {}
        """Group -> (topology epoch, number of attempts, monotonic time of the next one)."""

    def ask(self, group_id: str, epoch: int) -> bool:
        """Return whether to ask a member for the description now. If so, a pause begins."""
        known = self._pauses.get(group_id)
        if known is not None and known[0] == epoch and self._clock.monotonic_ms() < known[2]:
            return False
        self._pause(group_id, epoch)
        return True

    def _pause(self, group_id: str, epoch: int) -> None:
        """Begin a pause; each pause of an epoch is twice as long as the one before."""
        known = self._pauses.pop(group_id, None)
        attempts = known[1] + 1 if known is not None and known[0] == epoch else 0
        pause_ms = min(_FIRST_PAUSE_MS * 2 ** min(attempts, _DOUBLINGS_MAX), _PAUSE_MS_MAX)
        pause_ms = pause_ms * (_PERMILLE_MIN + self._random.below(_PERMILLE_SPREAD)) // 1000
        while len(self._pauses) >= _GROUPS_MAX:
            self._pauses.pop(next(iter(self._pauses)), None)
        self._pauses[group_id] = epoch, attempts, self._clock.monotonic_ms() + pause_ms

    def set(self, group_id: str, epoch: int, description: TopologyDescription) -> None:
        """Give the plugin a description.

        Raises:
            PassingFailure: the plugin failed for now; a longer pause begins.
            StreamsTopologyDescriptionUpdateFailed: it will fail for this epoch again.
        """
        try:
            as_user(self._plugin.set_topology, group_id, epoch, description)
        except errors.StreamsTopologyDescriptionUpdateFailed:
            raise
        except Exception as error:
            _log.warning("no description of group %s was stored: %r", group_id, error)
            self._pause(group_id, epoch)
            raise PassingFailure(str(error)) from error

    def stored(self, group_id: str) -> None:
        """Note that the group's description is stored: no pause is left."""
        self._pauses.pop(group_id, None)

    def get(self, group_id: str, epoch: int) -> TopologyDescription | None:
        """Return a description; None if there is none. Raise PassingFailure for any error."""
        try:
            return as_user(self._plugin.get_topology, group_id, epoch)
        except Exception as error:
            _log.warning("the description of group %s cannot be read: %r", group_id, error)
            raise PassingFailure(str(error)) from error

    def delete(self, group_id: str) -> None:
        """Let the plugin forget a group. Raise GroupDeletionFailed for any error."""
        try:
            as_user(self._plugin.delete_topology, group_id)
        except Exception as error:
            _log.warning("the description of group %s cannot be deleted: %r", group_id, error)
            raise errors.GroupDeletionFailed(
                "Topology description plugin failed to delete the topology."
            ) from error
        self._pauses.pop(group_id, None)


def load_plugin(name: str) -> Any:
    """Return a plugin by the name of its class. Raise ConfigError if there is no such class."""
    module_name, _, class_name = name.rpartition(".")
    setting = "group.streams.topology.description.plugin.class"
    if not module_name:
        raise ConfigError(f"{setting}: {name!r} is not of the form module.Class")
    try:
        found = getattr(__import__(module_name, fromlist=(class_name,)), class_name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{setting}: {name!r} cannot be loaded: {error}") from error
    return found()
