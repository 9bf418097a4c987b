"""Mutants: small bugs that the tests have to notice, each planted in turn.

    python -m tests.mutants [ROOM, ID or FILE.toml ...] [--slow] [--wide] [-j 2] [--json FILE]

A mutant is an entry of a list in `rooms/`, which is named as the room whose code it breaks:
`rooms/storage/log.toml` is about `embedlog/storage/log`, `rooms/wire.toml` about `wire`. The name
`storage` stands for `rooms/storage.toml` and for all lists in `rooms/storage/`.

    [[mutant]]
    id = "truncation-beyond-the-leaders-end"
    file = "embedlog/replication/fetcher/followed.py"
    breaks = "A follower keeps records of an epoch that the leader ended earlier."
    change = '''
         return min(own_end, end)
    -return min(own_end, end_offset, end)
    +return min(end_offset, end)
    '''
    tests = ["tests/replication/test_following.py"]

- `change` is the hunk of a diff: lines with `-` become lines with `+`, lines with a space are
  context. The old lines have to occur once in the file, at any indentation: a hunk may be moved to
  the left, and code may move within its file. Add context until the hunk is unique.
- `breaks` is a sentence: the promise that the mutant breaks, as a user or a neighbour sees it.
- `tests` are files, folders or single tests to run first. If they pass, or without them, the tool
  runs the room's test files that are named as the module or import it, then the folders of `tests`
  from the module's own to the room's, and with `--wide` all tests. Name the test that notices, so
  that the tool finds it in a second.
- `slow = true` says that only slow tests notice: the mutant is left to `--slow`.
- `equivalent = "why"` marks a change that nobody can notice, with the proof. It is not run.
- `survives = "why"` marks a gap that is accepted. It is run, but does not fail the run.

A good mutant breaks the second half of a rule whose first half has a test: one operand of an `and`,
one argument of a `min`, the reset of a field, the first version of a gate, the order of two calls,
the largest value of a type. `python -m tests.mutants.candidates FILE...` prints such changes of a
file as a list to choose from, and `python -m tests.mutants CANDIDATES.toml` judges all of them.

A test notices a mutant if it fails or hangs with it, and passes without it. The tool works on
copies of the tree, one for each process. With `--json FILE` it keeps the verdicts, and the next run
with the file goes on where the last one ended, unless the tree has changed. The exit code is 1 if
an unmarked mutant survives.
"""
