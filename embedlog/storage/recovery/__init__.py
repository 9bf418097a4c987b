"""Opening a log that was not closed cleanly, and what is done about damage.

    `recovery` loads or recovers; before it `sweep` tidies the directory; `torn_write` tells what a
    killed process leaves from rot; `salvage` takes damage out and keeps every good batch.
"""
