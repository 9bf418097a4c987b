"""Real file systems of a chosen size, for programs that run as root."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import tempfile
from collections.abc import Iterator


def run(*command: str) -> None:
    """Run a command; the error for a failure has its output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.returncode} {done.stderr.strip()}")


@functools.cache
def why_not() -> str:
    """Return why nothing can be mounted here; "" if it can."""
    if os.geteuid() != 0:
        return "only root can mount file systems"
    try:
        with tempfile.TemporaryDirectory() as base:
            os.mkdir(f"{base}/mounted")
            make_ext4(f"{base}/image", 8 << 20)
            with loop_mounted(f"{base}/image", f"{base}/mounted"):
                pass
    except OSError as error:
        return f"a file system cannot be mounted: {error}"
    return ""


def make_ext4(image: str, size: int) -> None:
    """Make a sparse file with an empty ext4."""
    with open(image, "wb") as file:
        file.truncate(size)
    run("mkfs.ext4", "-q", "-F", image)


@contextlib.contextmanager
def loop_mounted(image: str, directory: str) -> Iterator[None]:
    """Mount an image at a directory."""
    run("mount", "-o", "loop", image, directory)
    try:
        yield
    finally:
        unmount(directory)


@contextlib.contextmanager
def tmpfs(directory: str, size: int) -> Iterator[None]:
    """Mount a file system in memory of this size."""
    run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", directory)
    try:
        yield
    finally:
        unmount(directory)


def unmount(directory: str) -> None:
    """Unmount; a busy file system goes when it is no longer in use."""
    try:
        run("umount", directory)
    except OSError:
        run("umount", "-l", directory)
