"""The small files beside the segments: Kafka's checkpoints and our own, each replaced whole.

form                    `sealed_file`, `checkpoint_files`
of a data directory     `clean_shutdown`, `log_dirs`, `archived_offsets`, `retention_pins`,
                        `commit_file`, `staged_layout`
of one log              `leader_epochs`, `published_offset`, `partition_metadata`
"""
