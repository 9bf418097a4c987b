"""A logger that costs nothing until its level is wanted."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from embedlog.logger import Logger, before_first_line


def test_a_line_carries_the_parts_name_its_level_and_its_place(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = Logger("storage")
    with caplog.at_level(logging.DEBUG, "embedlog"):
        log.debug("d %s", 1)
        log.info("i %s", 2)
        log.warning("w %s", 3)
        log.error("e %s", 4, exc_info=OSError("disk"))
    assert [(r.name, r.levelname, r.getMessage()) for r in caplog.records] == [
        ("embedlog.storage", "DEBUG", "d 1"),
        ("embedlog.storage", "INFO", "i 2"),
        ("embedlog.storage", "WARNING", "w 3"),
        ("embedlog.storage", "ERROR", "e 4"),
    ]
    assert {record.filename for record in caplog.records} == {"test_logger.py"}
    assert caplog.records[3].exc_info is not None


def test_levels_that_are_off_format_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Unprintable:
        def __str__(self) -> str:
            raise AssertionError("formatted")

    log = Logger("storage")
    with caplog.at_level(logging.WARNING, "embedlog"):
        log.debug("%s", Unprintable())
        log.info("%s", Unprintable())
    assert not caplog.records


def test_info_does_not_load_logging_and_a_warning_reaches_standard_error() -> None:
    script = (
        "import sys; from embedlog.logger import Logger; log = Logger('storage')\n"
        "log.info('quiet'); log.debug('quiet'); assert 'logging' not in sys.modules\n"
        "log.warning('the disk %s', 'fails')\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", script], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "the disk fails\n")


def test_without_a_descriptor_to_load_logging_with_a_warning_is_printed() -> None:
    script = (
        "import os, resource; from embedlog.logger import Logger; log = Logger('storage')\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\n"
        "log.warning('the disk %s', 'fails')\n"
        "log.error('the disk %s', 'is full', exc_info=OSError())\n"
        "log.info('quiet')\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", script], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "the disk fails\nthe disk is full\n")


def test_an_order_that_is_taken_back_configures_nothing(caplog: pytest.LogCaptureFixture) -> None:
    configured: list[str] = []
    take_back = before_first_line(lambda: configured.append("for a program that has ended"))
    take_back()
    take_back()
    Logger("tests.of.one.line").warning("later")
    assert [record.getMessage() for record in caplog.records] == ["later"]
    assert not configured
