"""Topics of a test's cluster: records from the log itself, seeding, and assertions.

logs.py        finds the leader of each partition        seeds.py         records to write
look.py        the ends of partitions, and their change  seeding.py       batches, gaps
reading.py     records between two offsets               transactions.py  left open, aborted
record.py      one record as a value                     json_lines.py    files of records
matching.py    rec, json_like, any_                      offsets.py       commits of groups
comparing.py   records against an expected list          topic.py         `Kafka.topic`
diff.py        the difference as text                    produced.py      `assert_produces`
formats/       bytes to values and back                  names.py         the nearest name
"""
