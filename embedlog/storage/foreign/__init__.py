"""Logs that another process owns and may be writing: no lock is taken, nothing written.

a partition's log, with its end            `log`
a part of it that is published             `offset_range`
the walk over batches that both use        `batches`
a segment, and the last one as it grows    `segment`, `tail`
without aborted transactions               `committed_batches`
the places to cut long ranges              `cuts`
"""
