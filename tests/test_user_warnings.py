"""Warnings point at the user's line."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import warnings

from embedlog.user_warnings import warn_user


def test_the_warning_points_at_the_first_frame_outside_the_library() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_user("something", RuntimeWarning)
    (warning,) = caught
    assert warning.filename == __file__
    assert warning.category is RuntimeWarning
    assert str(warning.message) == "something"


def test_frames_of_the_library_are_passed_over() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # A frame that claims to belong to the library.
        space = {"__name__": "embedlog.inner", "__package__": "embedlog", "warn_user": warn_user}
        exec("def inner():\n    warn_user('deep')", space)
        space["inner"]()  # type: ignore[operator]
    (warning,) = caught
    assert warning.filename == __file__


def test_the_warning_is_issued_even_without_a_frame_of_the_user() -> None:
    program = """
        import sys
        __package__ = "embedlog"
        from embedlog.user_warnings import warn_user
        warn_user("nobody else here")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "nobody else here" in done.stderr
