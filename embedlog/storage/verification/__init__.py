"""Reading the files of a data directory without changing any, for the commands `verify` and `dump`.

`verify`    the whole directory                      `directory`
            small files beside the logs              `root`
            one segment, and its indexes             `segment`, `index_claims`
            sound segments, to be skipped next time  `verified_segments`
`dump`      the content of files, item by item       `inspection`
"""
