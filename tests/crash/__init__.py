"""Programs that break things and count what was lost: `python -m tests.crash`."""
