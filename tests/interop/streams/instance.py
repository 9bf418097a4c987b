"""One process of the application that counts words: see `CountWords.java`."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support import jvm
from tests.support.tools import compiled_java

HERE = Path(__file__).parent


def compiled(folder: Path) -> str:
    """Compile the application; return the class path to run it with."""
    classes = folder / "classes"
    classes.mkdir()
    return compiled_java(HERE / "CountWords.java", classes, ("applications",))


class Instance:
    """One process of the application, with a state directory of its own."""

    def __init__(self, classes: str, address: str, folder: Path, *, threads: int) -> None:
        folder.mkdir()
        command = ["java", "-Xmx256m", *jvm.OPTIONS, "-cp", classes, "CountWords"]
        self._command = [*command, address, "counter", "lines", "counts", str(folder / "state")]
        self._command.append(str(threads))
        self._log = folder / "log"
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT
            )

    def kill(self) -> None:
        """Send SIGKILL, and wait for its end."""
        self._process.kill()
        self._process.communicate()

    def stop(self) -> None:
        """Let it close its threads, which leave the group."""
        self._process.communicate(timeout=60)
        assert self._process.returncode == 0, self._log.read_text()[-2000:]
