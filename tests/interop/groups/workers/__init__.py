"""Group members, a program for each client: see tests/interop/groups/journal.py."""
