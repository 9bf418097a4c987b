"""The finder of unclear sentences, and how many of them the project still has."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.support import prose

HITS_MAX = 11
"""Hits in the code and the chapters. The number may only fall."""
HITS_OF_TESTS_MAX = 22
"""Hits in `tests/`. The number may only fall."""
SLACK = 20
"""A limit may be this much above the number of hits before it has to be lowered."""

SHOWS_HITS = {
    Path(__file__),
    prose.ROOT / "tests/support/commit_messages.py",
    prose.ROOT / "tests/test_commit_messages.py",
}
"""Files that hold unclear sentences, or their words, as examples. The golden scenarios are left out
as well: their texts are the keys of recorded answers."""


def _check(limit: int, name: str, *places: str) -> None:
    hits = [
        hit
        for path in prose.files_of(*places)
        if path not in SHOWS_HITS and "scenarios" not in path.parts and path.stem != "differences"
        for hit in prose.hits_of(path)
    ]
    worst = Counter(hit.place.partition(":")[0] for hit in hits).most_common(5)
    assert len(hits) <= limit, (
        f"{len(hits)} unclear sentences, {name} is {limit}. Most are in {worst}; "
        f"python -m tests.support.prose {' '.join(places)} shows all"
    )
    assert len(hits) >= limit - SLACK, f"lower {name} to {len(hits)}"


def test_unclear_sentences_of_the_project_become_fewer() -> None:
    _check(HITS_MAX, "HITS_MAX", "embedlog", "wire", *prose.CHAPTERS)


def test_unclear_sentences_of_the_tests_become_fewer() -> None:
    _check(HITS_OF_TESTS_MAX, "HITS_OF_TESTS_MAX", "tests")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("what", "What was decided is told."),
        ("what", "Keep what it returned."),
        ("what", "Whatever is left goes."),
        ("what", "Return what `Admin.describe` is after what has come."),
        ("what", "Does the new log have what was read?"),
        ("what", "Raises what\n    is found."),
        ("who", "Whoever drives only tries it."),
        ("who", "It is for who waits to hear of."),
        ("who", "Who commits, and what a refusal means to it."),
        ("who", "The pid of who has the lock of a file."),
        ("those", "Those that wait are served."),
        ("those", "The offset is that of the first record."),
        ("those", "Does every `send` make a pass, or only one that filled a batch?"),
        ("those", "Such a one counts."),
        ("those", "Ranks of which a thread may hold several."),
        ("those", "Of those was none."),
        ("so many", "Join batches up to so many bytes."),
        ("so many", "So many times the size that is asked for."),
        ("so many", "Read so much that is asked for."),
        ("is told", "Clients are told the address."),
        ("is told", "The item was asked for."),
        ("is told", "Nothing is said of keys."),
        ("too", "A full disk is found, too."),
        ("too", "Print the records, too"),
    ],
)
def test_an_unclear_sentence_is_found(pattern: str, text: str) -> None:
    text = " ".join(text.split())
    assert [name for name, _match in prose.matches_in(text) if pattern in name]


@pytest.mark.parametrize(
    "text",
    [
        "What is the end offset?",
        "The disk is full. What does a follower do?",
        "Who leads the partition?",
        "Clients who know the address connect.",
        "Group members whose session has ended are removed.",
        "Every broker reads the log that the controller writes.",
        "Randomness of those pauses.",
        "A lock may be held so long as nobody waits.",
        "The message is so long that the codec pays.",
        "Answer so often that nobody counts.",
        "The request was too large.",
        "The bytes were read, too many of them twice.",
        "Return the offset after the last record, or None if the log is empty.",
    ],
)
def test_a_clear_sentence_is_not_found(text: str) -> None:
    assert not [name for name, _match in prose.matches_in(text)]


def test_every_kind_of_text_in_python_is_read() -> None:
    source = '''"""What is here."""

# A comment that ends with a clause, which tells
# what is there.
LIMIT = 3  # so many
"""Those that are short."""


def f(name: str) -> None:
    """Log
    what it does.
    """
    log.info("the record of %s and that of "
             f"{name['what is']} are whole, too")
'''
    assert [(line, text) for line, text in prose.python_texts(source)] == [
        (1, "What is here."),
        (3, "A comment that ends with a clause, which tells what is there."),
        (5, "so many"),
        (6, "Those that are short."),
        (10, "Log what it does."),
        (13, "the record of %s and that of N are whole, too"),
    ]


@pytest.mark.parametrize(
    "source",
    [
        'PATTERN = re.compile(r"what is (so many|so much) of those that")',
        'BODY = b"one that was told what is so"',
        'QUERY = "SELECT * FROM t WHERE what is so many"',
        'raise E(f"the offsets don\'t match what are assigned. Start again.")',
        '"""See `what is` and "those that are told" there."""',
        'KEY = "what is"',
        "'''See `one that`.'''",
    ],
)
def test_no_prose_is_not_read(source: str) -> None:
    assert not [
        name for _line, text in prose.python_texts(source) for name, _ in prose.matches_in(text)
    ]


def test_paragraphs_items_and_rows_of_markdown_are_read_and_code_is_not() -> None:
    source = """# Title

A paragraph with `what is` code,
on two lines.

```python
what is so many
```

- an item
- another item
"""
    assert [(line, text) for line, text in prose.markdown_texts(source)] == [
        (1, "# Title"),
        (3, "A paragraph with N code, on two lines."),
        (10, "- an item"),
        (11, "- another item"),
    ]
