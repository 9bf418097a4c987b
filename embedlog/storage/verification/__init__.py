"""Looking at every file of a data directory, and changing nothing: `dump` and `verify`.

all of a directory    `directory`       small files beside the logs         `root`
one segment           `segment`         what was found sound before         `verified_segments`
files item by item    `inspection`
"""
