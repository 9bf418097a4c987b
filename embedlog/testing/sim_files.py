"""`SimFiles`: a disk that loses power, fills up and fails on demand.

After a loss of power a file has its synced content, changed by any subset of the 512-byte sectors
of later writes. A directory has its synced names, changed by a prefix of the later changes.
`crash_images` yields such states, each as a new `SimFiles`.

A failed sync writes nothing, and its sectors are clean afterwards, as in Linux: programs read them
until the power goes, and no later sync writes them.

Each call has a number. A test makes the n-th call fail or write less, or lets the process
die in that call. `calls` is the number of calls so far, so that a test can try them all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from embedlog.runtime.clock import Clock
from embedlog.runtime.files import Bytes, DirectoryLock, File, FileStat, Volume
from embedlog.runtime.memory_files import (
    MemoryDirectory,
    MemoryFile,
    MemoryFiles,
    MemoryNode,
    MemoryTree,
)
from embedlog.runtime.randomness import Random

Names = dict[str, MemoryNode | MemoryDirectory]

SECTOR_SIZE = 512

_DEATH = -1
"""Takes the place of an errno in a planned fault: the process dies."""


class SimulatedCrash(BaseException):
    """The process dies in this call. Not an `Exception`: no process handles its own death."""


class _Plan:
    """The fault of one call: an errno, a short write, or death."""

    __slots__ = ("after", "errno", "forever", "size")

    def __init__(
        self,
        *,
        errno: int = 0,
        forever: bool = False,
        size: int | None = None,
        after: bool = False,
    ) -> None:
        self.errno = errno
        self.forever = forever
        self.size = size
        self.after = after


class SimNode(MemoryNode):
    """The content of a file, and the sectors written since the last sync.

    Two states of a disk share equal content as one `bytes` object until one of them writes.
    """

    __slots__ = ("_content", "_has_lost", "dirty", "synced")

    def __init__(self, content: bytes = b"") -> None:
        """`content` is synced."""
        super().__init__()
        self._content: bytes | None = content
        """The cached result of `content()`; None after a write."""
        self._views = self._views[0], memoryview(content)
        self.size = len(content)
        self.synced = content
        self.dirty: dict[int, None] = {}
        """Numbers of unsynced sectors, in the order of their first write."""
        self._has_lost = False
        """True after a failed sync: clean sectors may differ from the synced content."""

    def content(self) -> bytes:
        """Return the whole content, as programs see it."""
        if self._content is None:
            self._content = bytes(self.view(0, self.size))
        return self._content

    def take_own(self) -> None:
        """Copy shared content to an own buffer before a change, and before a view shows it."""
        if len(self._views[0]) < self.size:
            own = memoryview(bytearray(self._views[1]))
            self._views = own, own.toreadonly()

    def write(self, buffers: Sequence[Bytes], position: int) -> int:
        self.take_own()
        self._content = None
        written = super().write(buffers, position)
        first = position // SECTOR_SIZE
        last = (position + max(written, 1) - 1) // SECTOR_SIZE
        self.dirty.update(dict.fromkeys(range(first, last + 1)))
        return written

    def resize(self, size: int) -> None:
        self.take_own()
        self._content = None
        first, last = sorted((size // SECTOR_SIZE, self.size // SECTOR_SIZE))
        super().resize(size)
        if size < len(self.synced):
            # Mark the cut sectors unsynced: their bytes read as zeros if the file grows again.
            self.dirty.update(dict.fromkeys(range(first, last + 1)))

    def sync(self) -> None:
        """Make the dirty sectors durable."""
        if self.dirty or len(self.synced) != self.size:
            self.synced = self._synced_with(self.dirty, self.size)
            self.dirty.clear()

    def lose(self) -> None:
        """Fail a sync: the dirty sectors become clean without being written."""
        self.dirty.clear()
        self._has_lost = True

    def image(self, sectors: set[int], keeps_size: bool) -> SimNode:
        """Return the file after a loss of power that kept only these dirty sectors.

        `keeps_size`: the new size survived too. A kept sector extends the file to the sector's end.
        """
        end = self.size if keeps_size else len(self.synced)
        if sectors:
            end = max(end, min(self.size, (max(sectors) + 1) * SECTOR_SIZE))
        return SimNode(self._synced_with(sectors, end))

    def _synced_with(self, sectors: Collection[int], end: int) -> bytes:
        """Return `end` bytes: the synced content, but with `sectors` as programs see them."""
        if not sectors and end == len(self.synced):
            return self.synced
        if len(sectors) == len(self.dirty) and end == self.size and not self._has_lost:
            return self.content()
        made = bytearray(self.synced[:end])
        made.extend(bytes(end - len(made)))
        for sector in sectors:
            start, stop = sector * SECTOR_SIZE, min(end, (sector + 1) * SECTOR_SIZE)
            if start < stop:
                made[start:stop] = self.view(start, stop)
        # Share the object with `content()` if the bytes are equal, as they often are.
        return self.content() if made == self.content() else bytes(made)


class SimFile(MemoryFile):
    """An open file of `SimFiles`."""

    __slots__ = ("_path", "_sim")

    _node: SimNode

    def __init__(self, node: SimNode, files: SimFiles, path: str) -> None:
        super().__init__(node, files)
        self._sim = files
        self._path = path

    def write(self, buffers: Sequence[Bytes], position: int) -> int:
        limit = self._sim.begin("write", self._path)
        if limit is not None:
            buffers = [b"".join(buffers)[:limit]]
        written = super().write(buffers, position)
        self._sim.end()
        return written

    def sync(self) -> None:
        try:
            self._sim.begin("sync", self._path)
        except OSError:
            self._node.lose()
            raise
        self._node.sync()
        self._sim.end()

    def truncate(self, size: int) -> None:
        self._sim.begin("truncate", self._path)
        super().truncate(size)
        self._sim.end()

    def reserve(self, size: int) -> None:
        self._sim.begin("reserve", self._path)
        super().reserve(size)
        self._sim.end()

    def view(self, position: int, size: int) -> memoryview:
        self._sim.begin("view", self._path)
        self._node.take_own()
        return super().view(position, size)

    def size(self) -> int:
        self._sim.begin("size", self._path)
        return super().size()


class SimDirectory(MemoryDirectory):
    """The entries of a directory, and its durable entries."""

    __slots__ = ("synced",)

    def __init__(self) -> None:
        super().__init__()
        self.synced: Names = {}


class SimTree(MemoryTree):
    """Directories and files, with their states after a loss of power."""

    __slots__ = ("unsynced",)

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.unsynced: list[tuple[SimDirectory, dict[str, MemoryNode | MemoryDirectory | None]]]
        self.unsynced = []
        """Unsynced changes of entries, in order."""

    def new_node(self) -> SimNode:
        return SimNode()

    def new_directory(self) -> SimDirectory:
        return SimDirectory()

    def change(
        self, directory: MemoryDirectory, changes: dict[str, MemoryNode | MemoryDirectory | None]
    ) -> None:
        super().change(directory, changes)
        assert isinstance(directory, SimDirectory)
        self.unsynced.append((directory, changes))

    def sync(self, directory: MemoryDirectory) -> None:
        """Make the entries of a directory durable."""
        assert isinstance(directory, SimDirectory)
        directory.synced = dict(directory.entries)
        self.unsynced = [change for change in self.unsynced if change[0] is not directory]

    def survivor(self) -> SimTree:
        """Return the tree as the next process finds it, all durable."""

        def copy(directory: MemoryDirectory) -> SimDirectory:
            made = SimDirectory()
            for name, entry in directory.entries.items():
                if isinstance(entry, MemoryDirectory):
                    made.entries[name] = copy(entry)
                else:
                    assert isinstance(entry, SimNode)
                    made.entries[name] = SimNode(entry.content())
            made.synced = dict(made.entries)
            return made

        survivor = SimTree(self._clock)
        survivor.root = copy(self.root)
        return survivor

    def image(self, sectors: set[tuple[SimNode, int]], *, names: int, keeps_sizes: bool) -> SimTree:
        """Return the tree after a loss of power.

        Only these survive of the unsynced data: `sectors`, the first `names` changes of entries,
        and with `keeps_sizes` the new sizes of files.
        """
        durable: dict[int, Names] = {}
        for directory, changes in self.unsynced[:names]:
            entries = durable.setdefault(id(directory), dict(directory.synced))
            for name, entry in changes.items():
                if entry is None:
                    entries.pop(name, None)
                else:
                    entries[name] = entry
        kept: dict[SimNode, set[int]] = {}
        for node, sector in sectors:
            kept.setdefault(node, set()).add(sector)

        def copy(directory: MemoryDirectory) -> SimDirectory:
            assert isinstance(directory, SimDirectory)
            made = SimDirectory()
            for name, entry in durable.get(id(directory), directory.synced).items():
                if isinstance(entry, MemoryDirectory):
                    made.entries[name] = copy(entry)
                else:
                    assert isinstance(entry, SimNode)
                    made.entries[name] = entry.image(kept.get(entry, set()), keeps_sizes)
            made.synced = dict(made.entries)
            return made

        image = SimTree(self._clock)
        image.root = copy(self.root)
        return image

    def nodes(self) -> list[SimNode]:
        """Return every file with a present or a durable name."""
        found: dict[SimNode, None] = {}

        def visit(directory: MemoryDirectory) -> None:
            assert isinstance(directory, SimDirectory)
            for entry in (*directory.entries.values(), *directory.synced.values()):
                if isinstance(entry, SimNode):
                    found[entry] = None
                elif isinstance(entry, MemoryDirectory):
                    visit(entry)

        visit(self.root)
        return list(found)

    def contents(self) -> dict[str, bytes]:
        """Return path -> content of every file, as programs see it. This counts as no call."""
        found: dict[str, bytes] = {}

        def visit(directory: MemoryDirectory, prefix: str) -> None:
            for name, entry in sorted(directory.entries.items()):
                if isinstance(entry, MemoryDirectory):
                    visit(entry, f"{prefix}{name}/")
                else:
                    assert isinstance(entry, SimNode)
                    found[prefix + name] = entry.content()

        visit(self.root, "")
        return found


class SimFiles(MemoryFiles):
    """A file system in memory with a durable and a volatile state.

    >>> from embedlog.runtime.randomness import seeded
    >>> disk = SimFiles()
    >>> file = disk.open("log", create=True)
    >>> disk.sync_directory("")
    >>> file.write([b"kept"], 0)
    4
    >>> file.sync()
    >>> file.write([b"lost"], 4)
    4
    >>> [image.read("log") for image in disk.crash_images(seeded(1), 2)]
    [b'kept', b'keptlost']
    """

    boot_id = "boot-1"

    tree: SimTree

    def __init__(self, clock: Clock | None = None, tree: SimTree | None = None) -> None:
        clock = clock if clock is not None else Clock()
        super().__init__(clock, tree if tree is not None else SimTree(clock))
        self.calls = 0
        """Number of calls so far, which is the number of the next call."""
        self.trace: list[tuple[str, str]] = []
        """(name, path) of every call."""
        self._plans: dict[int, _Plan] = {}
        self._broken: _Plan | None = None
        self.failing: dict[str, int] = {}
        """Directories on a failed disk -> errno. Every call on a path in them fails."""
        self._is_dying = False
        self._is_dead = False

    # Planning faults

    def fail(self, call: int, errno: int, *, forever: bool = False) -> None:
        """Make call number `call` fail with `errno`; with `forever` also all later calls."""
        self._plans[call] = _Plan(errno=errno, forever=forever)

    def write_short(self, call: int, size: int) -> None:
        """Make call number `call`, if it is a write, take at most `size` bytes."""
        self._plans[call] = _Plan(size=size)

    def crash(self, call: int, *, after: bool = False, size: int | None = None) -> None:
        """Make the process die at call number `call`, before or `after` its effect.

        With `size` a write stores that many bytes first.
        """
        self._plans[call] = _Plan(errno=_DEATH, after=after or size is not None, size=size)

    def heal(self) -> None:
        """End all faults."""
        self.failing.clear()
        self._plans.clear()
        self._broken = None

    # States after a crash

    def survivor(self) -> SimFiles:
        """Return the disk as the next process finds it after a kill: nothing is lost."""
        survivor = SimFiles(self.clock, self.tree.survivor())
        survivor.boot_id = self.boot_id
        return survivor

    def crash_images(self, random: Random, count: int) -> Iterator[SimFiles]:
        """Yield at most `count` states that a loss of power at this moment may leave.

        The first state loses all unsynced data, the second loses nothing. Later states keep a
        prefix of the sectors in the order of their writes, all sectors but one, one sector, or a
        random subset, each with a random prefix of the changes of entries.
        """

        def image(sectors: set[tuple[SimNode, int]], *, names: int, keeps_sizes: bool) -> SimFiles:
            tree = self.tree.image(sectors, names=names, keeps_sizes=keeps_sizes)
            files = SimFiles(self.clock, tree)
            files.boot_id = self.boot_id + "+"
            return files

        order = [(node, sector) for node in self.tree.nodes() for sector in node.dirty]
        names = len(self.tree.unsynced)
        yield image(set(), names=0, keeps_sizes=False)
        if count > 1:
            yield image(set(order), names=names, keeps_sizes=True)
        for number, kept in enumerate(_subsets(order, random)):
            if number >= count - 2:
                return
            kept_names = names if number % 2 else random.below(names + 1)
            yield image(kept, names=kept_names, keeps_sizes=random.below(2) == 1)

    # Calls

    def begin(self, call: str, path: str) -> int | None:
        """Count a call. Return the size it may write; None for no limit."""
        if self._is_dead:
            raise SimulatedCrash
        number = self.calls
        self.calls += 1
        self.trace.append((call, path))
        for failing, errno in self.failing.items():
            if path == failing or path.startswith(f"{failing}/"):
                raise OSError(errno, f"simulated failure of the disk of {failing}, {call}", path)
        plan = self._plans.get(number, self._broken)
        if plan is None:
            return None
        if plan.errno == _DEATH:
            self._is_dying = True
            if not plan.after:
                self.end()
        elif plan.errno:
            if plan.forever:
                self._broken = plan
            raise OSError(plan.errno, f"simulated failure of call {number}, {call}", path)
        return plan.size if call == "write" else None

    def end(self) -> None:
        """End a call after its effect."""
        if self._is_dying:
            self._is_dead = True
            raise SimulatedCrash

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        self.begin("open", path)
        file = super().open(path, create=create, writable=writable)
        self.end()
        return file

    def read(self, path: str) -> bytes:
        self.begin("read", path)
        node = self.tree.node(path)
        assert isinstance(node, SimNode)
        return node.content()

    def stat(self, path: str) -> FileStat | None:
        self.begin("stat", path)
        return super().stat(path)

    def list(self, path: str) -> list[str]:
        self.begin("list", path)
        return super().list(path)

    def make_directory(self, path: str, mode: int = 0o777) -> None:
        self.begin("make_directory", path)
        super().make_directory(path, mode)
        self.end()

    def rename(self, old: str, new: str) -> None:
        self.begin("rename", old)
        super().rename(old, new)
        self.end()

    def remove(self, path: str) -> None:
        self.begin("remove", path)
        super().remove(path)
        self.end()

    def volume(self, path: str) -> Volume:
        self.begin("volume", path)
        return super().volume(path)

    def sync_directory(self, path: str) -> None:
        self.begin("sync_directory", path)
        self.tree.sync(self.tree.directory(path))
        self.end()

    def lock(self, path: str, *, names_owner: bool = True) -> DirectoryLock:
        self.begin("lock", path)
        return super().lock(path, names_owner=names_owner)

    def _handle(self, node: MemoryNode, path: str) -> File:
        assert isinstance(node, SimNode)
        return SimFile(node, self, path)


def _subsets(
    order: list[tuple[SimNode, int]], random: Random
) -> Iterator[set[tuple[SimNode, int]]]:
    """Yield subsets of the dirty sectors, without end."""
    count = len(order)
    kinds: tuple[Callable[[], set[tuple[SimNode, int]]], ...] = (
        lambda: set(order[: random.below(count + 1)]),
        lambda: set(order) - {order[random.below(count)]} if count else set(),
        lambda: {order[random.below(count)]} if count else set(),
        lambda: {sector for sector in order if random.below(2)},
    )
    while True:
        for kind in kinds:
            yield kind()
