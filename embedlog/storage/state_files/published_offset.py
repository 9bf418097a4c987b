"""How far other processes may read a log: the high watermark, where the files do not tell it.

Of one broker's log at durability `os` the high watermark is the end: every whole batch in the files
is published, and nothing needs to be written for those who read along. At `fsync` it is behind the
end while a sync is under way, and a record that a reader has seen must not vanish with the power;
and where there are other replicas it is behind while one of them is, and another leader may take
back what is not committed. So there each commit stores its offset in a file of 16 bytes beside the
log:

    0   int64    high watermark: every record below is committed
    8   int64    its complement, which tells a half-written offset and a damaged one

An empty file is one whose owner died before the first commit stored its offset, which comes before
the first append: all is published, as without the file.

Measured: 2 us a commit, beside 200 us of a sync; an append of one broker at `os` pays nothing. A
page mapped for writing would be SIGBUS on a full disk. The file is never synced: only processes of
the same boot read it, after a restart of the machine every whole batch is synced or cut.
"""

from __future__ import annotations

from struct import Struct

from embedlog.errors import CorruptRecord
from embedlog.storage import paths
from embedlog.storage.events import events
from embedlog.storage.open_files import Openable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.runtime.files import Files
    from embedlog.storage.open_files import OpenFiles

_CONTENT = Struct(">qq")
_ATTEMPTS = 100
"""A read beside a write may see the half of it; so often it does not."""


class PublishedOffset(Openable):
    """The file of one log. Requires: the partition lock. Its file is one of `OpenFiles`."""

    __slots__ = ("_open_files", "offset")

    def __init__(self, open_files: OpenFiles, directory: str) -> None:
        super().__init__(f"{directory}/{paths.PUBLISHED_OFFSET}")
        self._open_files = open_files
        self.offset = -1
        """What this process has stored, -1 for nothing."""

    def publish(self, offset: int) -> None:
        """Let other processes read up to `offset`, unless the disk refuses."""
        try:
            self.store(offset)
        except OSError as error:
            events.debug("%s cannot be written: %s", self.path, error)

    def store(self, offset: int) -> None:
        """As `publish`; of a new log it must not fail: without a file all of it is published.

        Raises:
            OSError: the disk refuses.
        """
        file = self.opened
        if file is None:
            file = self._open_files.open(self, create=True)
        file.write((_CONTENT.pack(offset, ~offset),), 0)
        self.offset = offset

    def release(self) -> None:
        """Let go of the descriptor."""
        self._open_files.forget(self)

    def remove(self) -> None:
        """The log's end is its high watermark from here on."""
        files = self._open_files.files
        if files.stat(self.path) is not None:
            files.remove(self.path)


def read_published(files: Files, directory: str) -> int | None:
    """The published offset of the log in `directory`; None when every whole batch is published.

    Raises:
        CorruptRecord: the file is damaged.
    """
    path = f"{directory}/{paths.PUBLISHED_OFFSET}"
    for _ in range(_ATTEMPTS):
        try:
            content = files.read(path)
        except FileNotFoundError:
            return None
        if not content:
            return None
        if len(content) == _CONTENT.size:
            offset, complement = _CONTENT.unpack(content)
            if offset == ~complement:
                return int(offset)
    raise CorruptRecord(path, 0, f"{content!r} is no offset with its complement")
