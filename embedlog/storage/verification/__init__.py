"""Checking every file of a data directory without changing any: `dump` and `verify`.

all of a directory    `directory`       small files beside the logs         `root`
one segment           `segment`         its indexes                         `index_claims`
sound segments        `verified_segments`
files item by item    `inspection`
"""
