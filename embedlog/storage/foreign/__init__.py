"""Reading logs that another process owns and may be writing. No lock is taken, nothing is written.

a partition's log, up to the published end     `log`
a range of offsets known to be published       `offset_range`
the walk over batches that both use            `batches`
one segment; the last segment while it grows   `segment`, `tail`
leaving out aborted transactions               `committed_batches`
cutting a long range into parts                `cuts`
"""
