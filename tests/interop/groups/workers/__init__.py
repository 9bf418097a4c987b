"""Group members, one program for each client: see tests/interop/groups/journal.py."""
