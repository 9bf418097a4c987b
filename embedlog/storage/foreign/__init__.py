"""Logs that another process owns and may be writing: no lock is taken, nothing written.

    `log` is a partition, with its end; `offset_range` a part of it that is known to be published.
    `batches` is the walk that both share, over `segment`s and the `tail` that still grows.
    `heads` says where batches lie, unchecked.
    `committed_batches` leaves out what transactions aborted; `cuts` says where to part long ranges.
"""
