"""Saved states of clusters for tests: see `Snapshot`.

snapshot     the state: how it is taken, saved and read
gate         holds requests while a busy cluster is copied
restoring    another state in place of the present one
"""
