"""Replace functions that Windows lacks by functions that Windows has. Import this file first.

It cannot show that Windows refuses to rename or remove an open file.
"""

from __future__ import annotations

import asyncio
import concurrent.futures.thread
import fcntl
import mmap
import os
import random
import select
import selectors
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import types
from typing import Any

_LOADED_AS_THEY_ARE = (
    asyncio,
    concurrent.futures.thread,
    random,
    shutil,
    ssl,
    subprocess,
    tempfile,
    threading,
)

_OF_OS = (
    *("O_CLOEXEC", "O_DIRECTORY", "pread", "preadv", "pwrite", "pwritev", "posix_fallocate"),
    *("fdatasync", "register_at_fork", "fork", "eventfd", "EFD_CLOEXEC", "EFD_NONBLOCK"),
    *("memfd_create", "sendfile", "sysconf", "statvfs", "getuid"),
)
_OF_MMAP = [name for name in dir(mmap) if name.startswith(("PROT_", "MAP_", "MADV_"))]


def _take_away(module: Any, *names: str) -> None:
    for name in names:
        if hasattr(module, name):
            delattr(module, name)


def _locking(descriptor: int, mode: int, size: int) -> None:
    assert (mode, size) == (2, 1), "LK_NBLCK of one byte"
    assert os.lseek(descriptor, 0, os.SEEK_CUR) >= 1 << 20, "behind what others read"
    try:
        _flock(descriptor, 6)
    except BlockingIOError:
        raise PermissionError(13, "Permission denied") from None


def _socketpair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        one = socket.create_connection(server.getsockname())
        return one, server.accept()[0]


def _no_mmap(*_: object, **__: object) -> None:
    raise AssertionError("a mapped file cannot be cut on Windows")


def _no_sendmsg(*_: object, **__: object) -> None:
    raise AttributeError("sendmsg")


_flock = fcntl.flock
_take_away(os, *_OF_OS)
_take_away(mmap, *_OF_MMAP)
_take_away(signal, "SIGHUP")
_take_away(select, "epoll", "poll")
_take_away(socket, "AF_UNIX")
mmap.mmap = _no_mmap  # type: ignore[assignment,misc]
socket.socketpair = _socketpair  # type: ignore[assignment]
socket.socket.sendmsg = _no_sendmsg  # type: ignore[assignment,method-assign]
socket.SO_EXCLUSIVEADDRUSE = socket.SO_REUSEADDR  # type: ignore[attr-defined]
selectors.DefaultSelector = selectors.SelectSelector  # type: ignore[assignment,misc]
sys.modules["fcntl"] = None  # type: ignore[assignment]
_msvcrt: Any = types.ModuleType("msvcrt")
_msvcrt.LK_NBLCK, _msvcrt.locking = 2, _locking
sys.modules["msvcrt"] = _msvcrt
