"""`cordoned.log.dirs` (KIP-1066): the log directories that get no new replicas."""

from __future__ import annotations

from embedlog.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

CORDONED = "cordoned.log.dirs"
ALL = "*"


def check_cordoned(named: Collection[str], log_dirs: Collection[str]) -> None:
    """Check the setting against the existing directories.

    Raises:
        ConfigError: it names an unknown directory, a directory twice, or "*" with a directory.
    """
    if len(set(named)) < len(named):
        raise ConfigError(f"Configuration '{CORDONED}' values must not be duplicated.")
    if ALL in named:
        if len(named) > 1:
            raise ConfigError(
                f"requirement failed: When {CORDONED} is set to {ALL}, it must not contain other"
                " values"
            )
        return
    missing = [each for each in named if each not in log_dirs]
    if missing:
        raise ConfigError(
            f"requirement failed: All entries in {CORDONED} must be present in log.dirs or log.dir."
            f" Missing entries : {', '.join(missing)}"
        )
