"""Jobs for later: delayed, by cron, or checked for duplicates first.

They lie in a compacted topic, with the id of the job as key and the due time as timestamp. One
process at a time, chosen by a consumer group, moves due jobs to the ready topic. A move is one
transaction: the ready record and the tombstone of the delayed one appear together.
"""
