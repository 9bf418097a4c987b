"""The clock of a cluster for tests: see `KafkaClock`.

moved_clock        the clock, real time plus what a test has jumped
moved_scheduler    the real scheduler by this clock
mover              jumps: duties in the order of their due times
waits              the threads that wait by this clock
kafka_clock        the calls of a test
leaps              clock="auto": time leaps while somebody waits
traffic            the waiting requests, and the living members of groups
heartbeats         sessions that go on over a jump
timers             the due times of everything, in words
"""
