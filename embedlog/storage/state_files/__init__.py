"""The small files beside the segments: Kafka's checkpoints and ours, each replaced whole.

    how they are written    `sealed_file`, `checkpoint_files`
    of a data directory     `checkpoints`, `clean_shutdown`, `archived_offsets`, `retention_pins`
    of one log              `leader_epochs`, `start_offset`, `published_offset`, and the topic's id:
                            `partition_metadata`
"""
