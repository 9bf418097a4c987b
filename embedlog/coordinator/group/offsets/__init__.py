"""What groups have committed, and who may change it.

store     the offsets, as the records of one partition say
records   from an offset to its record
commit    OffsetCommit    fetch   OffsetFetch    delete   OffsetDelete
expiry    what is deleted because nobody needs it any more
"""
