"""Committed offsets: storing, fetching, deleting and expiring them.

store     the committed offsets of one shard, and their records
commit    OffsetCommit    fetch   OffsetFetch    delete   OffsetDelete
expiry    deletes old offsets and empty groups
"""
