"""All logs of one data directory: open, look up, delete, checkpoint, close.

the logs           `log_manager`, `log_opener`, `partition_directories`, `leftovers` (files to be
                   removed)
the directory      `preparation`, `owned_directory`, `meta_properties`, `data_path` (the path that
                   `embedlog.open` gets)
offsets            `checkpoints`, `log_checkpoints`, `pins` (offsets that retention keeps)
background work    `tasks`, `health` (its failures)
"""
