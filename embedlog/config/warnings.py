"""Warnings about settings without the effect that the user wants."""

from __future__ import annotations

from collections.abc import Mapping

from embedlog.config.definitions import BROKER

_UNUSED = "Accepted, not used"
"""The documentation of each setting without effect has these words."""

_ALWAYS = {"inter.broker.listener.name": "PLAINTEXT"}
"""These values cause no warning: they differ from Kafka's defaults, but are true of embedlog."""

_OF_THE_QUORUM = ("controller.quorum.voters", "controller.quorum.bootstrap.servers")
"""No warning for these settings, which Kafka's own `server.properties` sets: embedlog finds its
controller without them."""

_ARGUMENTS = ("background", "brokers", "cluster_id", "durability", "log_dirs", "racks")
"""The arguments of `embedlog.open` that are no settings."""

_LIKENESS_MIN = 0.85

_OF_SECURITY = ("authorizer.", "sasl.", "security.", "ssl.", "delegation.token.")


def warn_of(unknown: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Warn the user about each unknown name, and once about all settings without effect."""
    unused = [name for name, text in given.items() if _is_without_effect(name, text)]
    if not unknown and not unused:
        return
    from embedlog.user_warnings import warn_user

    for name in unknown:
        warn_user(f"unknown broker setting {name!r}{_hint(name)}")
    if unused:
        listed = ", ".join(f"{name}={_shown(name, given[name])}" for name in unused)
        insecure = any(name.startswith(_OF_SECURITY) for name in unused)
        risk = "; listeners neither encrypt nor authenticate" if insecure else ""
        warn_user(f"broker settings without effect in embedlog: {listed}{risk}")


def _is_without_effect(name: str, text: str) -> bool:
    """Return whether the user's value asks for an effect that the setting does not have."""
    if _UNUSED not in BROKER.documentation(name) or name in _OF_THE_QUORUM:
        return False
    key = BROKER[name]
    value = key.parse(text)
    if name == "listener.security.protocol.map":
        return "PLAINTEXT:PLAINTEXT" not in str(value)
    return value != key.default_value() and text != _ALWAYS.get(name)


def _shown(name: str, text: str) -> str:
    return "[hidden]" if BROKER[name].is_sensitive else text


def _hint(name: str) -> str:
    """Suggest the name that the user most likely meant, if one is likely."""
    from difflib import get_close_matches

    from embedlog.config.topic_synonyms import BROKER_NAMES

    close = get_close_matches(name.replace(".", "_"), _ARGUMENTS, 1, _LIKENESS_MIN)
    nearest = BROKER_NAMES.get(name) or next(iter(close), None) or BROKER.nearest(name)
    return f"; did you mean {nearest!r}?" if nearest else ""
