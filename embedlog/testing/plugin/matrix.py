"""Give a test a case for each cluster that its markers ask for."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog.errors import ConfigError
from embedlog.testing.plugin.marks import Marked, cases_of

_HIDDEN: Any = getattr(pytest, "HIDDEN_PARAM", None)


def parametrize(metafunc: pytest.Metafunc, name: str, home: str) -> None:
    """Parametrise the fixture `name`, or `name`_session, if the markers say so.

    `home` is the module of both fixtures.
    """
    session = f"{name}_session"
    used = [each for each in (name, session) if each in metafunc.fixturenames]
    ours = [each for each in used if _is_from(home, metafunc, each)]
    if not ours:
        return
    _complain_of_rivals(metafunc, ours[0])
    try:
        cases = cases_of(metafunc.definition, name)
    except ConfigError as error:
        pytest.fail(f"{metafunc.definition.nodeid}: {error}", pytrace=False)
    if len(cases) > 1:
        _parametrize(metafunc, ours[0], cases)
    elif ours[0] == session and cases[0].given:
        # The fixture of the session cannot see the test's markers.
        _parametrize(metafunc, session, cases)


def _parametrize(metafunc: pytest.Metafunc, fixture: str, cases: list[Marked]) -> None:
    ids: list[Any] = [each.id for each in cases]
    if len(cases) == 1 and not ids[0]:
        ids = [_HIDDEN or "shaped"]
    metafunc.parametrize(fixture, cases, ids=ids, indirect=True)


def _definitions(metafunc: pytest.Metafunc, fixture: str) -> list[Any]:
    return list(getattr(metafunc, "_arg2fixturedefs", {}).get(fixture, ()))


def _is_from(home: str, metafunc: pytest.Metafunc, fixture: str) -> bool:
    """Return whether the test gets this plugin's fixture; another fixture may wrap it."""
    for definition in reversed(_definitions(metafunc, fixture)):
        if definition.func.__module__ == home:
            return True
        if fixture not in definition.argnames:
            return False  # the project has a fixture of its own
    return False


def _complain_of_rivals(metafunc: pytest.Metafunc, fixture: str) -> None:
    """Fail if another installed plugin has a fixture of the same name."""
    config = metafunc.config
    if config.getini("embedlog_fixture"):
        return
    installed = {
        plugin.__name__.partition(".")[0]: dist.project_name
        for plugin, dist in config.pluginmanager.list_plugin_distinfo()
        if hasattr(plugin, "__name__")
    }
    for definition in _definitions(metafunc, fixture):
        package = definition.func.__module__.partition(".")[0]
        if package != "embedlog" and package in installed:
            pytest.fail(
                f"{metafunc.definition.nodeid}: two plugins define the fixture {fixture!r}: "
                f"embedlog and {installed[package]}. Set `embedlog_fixture = embedlog` in the ini "
                "file to get embedlog's as `embedlog`, `embedlog_session` and "
                "`@pytest.mark.embedlog`, or `embedlog_fixture = off` to leave the name to the "
                "other",
                pytrace=False,
            )
