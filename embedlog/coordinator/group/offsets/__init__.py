"""Committed offsets: storing, fetching, deleting and expiring them.

store     the offsets of one partition's records, and their records
commit    OffsetCommit    fetch   OffsetFetch    delete   OffsetDelete
expiry    deletes old offsets and empty groups
"""
