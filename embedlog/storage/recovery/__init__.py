"""Opening a log that was not closed cleanly, and handling damage.

load or recover a log                          `recovery`
tidy the directory before the log is read      `sweep`
tell a killed process's torn write from rot    `torn_write`
decide where the log begins                    `start_offset`
remove damage, keep every good batch           `salvage`
"""
