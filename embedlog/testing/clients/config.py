"""`client_config`: the settings with which a foreign client reaches a cluster."""

from __future__ import annotations

from typing import Any

from embedlog.errors import ConfigError
from embedlog.testing.clients.kinds import KINDS, ClientKind
from embedlog.testing.names import hint

_BY_NAME = {name: kind for kind in KINDS for name in (kind.name, *kind.aliases)}
_NEW_GROUPS = ("group.protocol", "group_protocol")


def client_config(
    kind: str,
    addresses: str,
    role: str | None = None,
    *,
    group_id: str | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Return settings that the constructor of a client takes unmodified.

    `role` is "producer", "consumer" or "admin". A `group_id` makes the role "consumer". Without a
    role the result has only settings that every client of the library takes. `settings` override
    the values, with the library's own names; where its names have dots, underscores stand for dots.

    >>> client_config("confluent", "127.0.0.1:9092", "producer", acks=1)["linger.ms"]
    0

    Raises:
        ConfigError: the library or the role is unknown, or a role other than "consumer" got a
            group.
    """
    known = _BY_NAME.get(kind)
    if known is None:
        raise ConfigError(f"client {kind!r} is unknown; {hint(kind, _BY_NAME)}")
    if role is None and group_id is not None:
        role = "consumer"
    if role is not None and role not in known.roles:
        raise ConfigError(f"role {role!r} is unknown; {hint(role, known.roles)}")
    if group_id is not None and role != "consumer":
        raise ConfigError(f"group_id={group_id!r} is for a consumer, and the role is {role!r}")
    made = _defaults(known, addresses, role)
    if group_id is not None:
        made[known.group] = group_id
    made.update({known.named(name): value for name, value in settings.items()})
    if any(str(made.get(name)).lower() == "consumer" for name in _NEW_GROUPS):
        for name in known.not_with_new_groups:
            if name not in settings:
                made.pop(name, None)
    return {name: known.converted(value) for name, value in made.items()}


def _defaults(kind: ClientKind, addresses: str, role: str | None) -> dict[str, Any]:
    own = {} if role is None else kind.roles[role]
    if kind.is_per_role and role is not None:
        return dict(own)
    return {kind.bootstrap: kind.addresses(addresses), **kind.common, **own}
