"""Commits of files that another process has staged; the owner of the data directory makes them."""
