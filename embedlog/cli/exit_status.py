"""The exit status of the command: what it means is in `embedlog.cli`."""

from __future__ import annotations

EXIT_DAMAGED = 1
EXIT_CANNOT = 2
