"""Commits of staged files, by the owner of a data directory."""
