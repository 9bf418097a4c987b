"""The background work of several data directories, seen as that of one."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    from embedlog.storage.directory.log_manager import LogManager

    class Directories(Protocol):
        """`DataDirectories`, as this file knows it."""

        managers: tuple[LogManager, ...]


class DirectoryTasks:
    """What `LogTasks` is to one directory. Each directory's tasks are a duty of their own."""

    __slots__ = ("_directories",)

    def __init__(self, directories: Directories) -> None:
        self._directories = directories

    @property
    def is_resting(self) -> bool:
        """Would a change that is made now go unnoticed until `stir` is called?"""
        return any(manager.tasks.is_resting for manager in self._directories.managers)

    def stir(self) -> None:
        """Something may have changed: see `LogTasks.stir`."""
        for manager in self._directories.managers:
            if manager.tasks.is_resting:
                manager.tasks.stir()

    def reconfigured(self) -> None:
        """Settings have changed: see `LogTasks.reconfigured`."""
        for manager in self._directories.managers:
            manager.tasks.reconfigured()

    def finish_now(self) -> Iterator[int]:
        """Do all the work that there is: see `LogTasks.finish_now`."""
        for manager in self._directories.managers:
            yield from manager.tasks.finish_now()

    def finish_before_close(self) -> None:
        """Remove what is of no use any more: see `LogTasks.finish_before_close`."""
        for manager in self._directories.managers:
            manager.tasks.finish_before_close()
