"""The clock of a cluster for tests: see `KafkaClock`.

steady_clock       the machine's time, whatever a test freezes
moved_clock        the same, plus the jumps of a test
moved_scheduler    the real scheduler by this clock
mover              jumps: duties in the order of their due times
waits              the threads that wait by this clock
kafka_clock        the calls of a test
leaps              clock="auto": time leaps while somebody waits
traffic            the waiting requests, and the living members of groups
heartbeats         sessions that go on over a jump
timers             the due times of everything, in words
"""
