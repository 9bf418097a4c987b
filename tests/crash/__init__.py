"""Programs that break things and count the losses: `python -m tests.crash`."""
