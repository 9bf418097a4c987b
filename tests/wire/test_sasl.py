"""The client's side of SASL: the conversation of RFC 7677, and servers that lie."""

from __future__ import annotations

from base64 import b64decode, b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.client.sasl_gate import Refused, ScramServer
from wire.sasl import ITERATIONS_MAX, PlainClient, SaslError, ScramClient

NONCE = "rOprNGfwEbeRWgbNEkqO"
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
CHALLENGE = (
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
)
FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SIGNATURE = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def scram(password: str = "pencil") -> ScramClient:
    return ScramClient("SCRAM-SHA-256", "user", password, nonce=NONCE)


def test_the_conversation_of_rfc_7677() -> None:
    client = scram()
    assert client.begin() == FIRST
    assert client.respond(CHALLENGE) == FINAL
    assert not client.is_complete
    assert client.respond(SIGNATURE) is None
    assert client.is_complete
    with pytest.raises(SaslError, match="goes on after the end"):
        client.respond(SIGNATURE)


names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)


@pytest.mark.slow
@given(mechanism=st.sampled_from(["SCRAM-SHA-256", "SCRAM-SHA-512"]), user=names, password=names)
def test_a_server_written_from_the_rfc_agrees(mechanism: str, user: str, password: str) -> None:
    server = ScramServer(mechanism, password)
    client = ScramClient(mechanism, user, password, nonce="abc", extensions={"tokenauth": "true"})
    first = client.begin()
    assert server.user_of(first) == user
    assert first.endswith(b",tokenauth=true")
    final = client.respond(server.challenge(first))
    assert final is not None
    assert client.respond(server.verify(final)) is None
    assert client.is_complete

    stranger = ScramClient(mechanism, user, password + "x", nonce="abc")
    proof = stranger.respond(server.challenge(stranger.begin()))
    assert proof is not None
    with pytest.raises(Refused):
        server.verify(proof)


@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_another_signature_is_never_taken(step: int) -> None:
    """Change one bit at a time: in steps of nine bits, which reach nearly every byte."""
    for bit in range(0, 256, step):
        client = scram()
        client.respond(CHALLENGE)
        changed = bytearray(b64decode(SIGNATURE[2:]))
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(SaslError, match="does not know the password either"):
            client.respond(b"v=" + b64encode(changed))
        assert not client.is_complete, bit


@pytest.mark.parametrize(
    "final", [b"", b"v", b"v=", b"v=!", b"x=y", SIGNATURE[:-4], b"w" + SIGNATURE]
)
def test_less_than_a_signature_is_never_taken(final: bytes) -> None:
    client = scram()
    client.respond(CHALLENGE)
    with pytest.raises(SaslError):
        client.respond(final)
    assert not client.is_complete


@pytest.mark.parametrize(
    ("challenge", "text"),
    [
        (b"", "is none"),
        (b"hello", "is none"),
        (b"\xff\xfe", "is none"),
        (b"e=unknown-user", "the server refuses: unknown-user"),
        (b"m=x," + CHALLENGE, "extension"),
        (CHALLENGE.replace(b"r=rOp", b"r=rOq"), "nonce"),
        (b"r=" + NONCE.encode() + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (b"s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (CHALLENGE.replace(b"s=W22", b"s=W2"), "salt is not base64"),
        (CHALLENGE.replace(b"s=W22ZaJ0SNY7soEsUEjb6gQ==", b"s="), "0 bytes of salt"),
        (CHALLENGE.replace(b"i=4096", b"i=4095"), "4096 to 1000000"),
        (CHALLENGE.replace(b"i=4096", b"i=0"), "4096 to 1000000"),
        (CHALLENGE.replace(b"i=4096", b"i=-4096"), "4096 to 1000000"),
        (CHALLENGE.replace(b"i=4096", b"i=%d" % (ITERATIONS_MAX + 1)), "4096 to 1000000"),
        (CHALLENGE.replace(b"i=4096", b"i=" + b"9" * 5000), "4096 to 1000000"),
        (CHALLENGE.replace(b",i=4096", b""), "4096 to 1000000"),
    ],
)
def test_a_challenge_that_is_not_to_be_answered(challenge: bytes, text: str) -> None:
    client = scram()
    with pytest.raises(SaslError, match=text):
        client.respond(challenge)
    assert not client.is_complete


def test_a_server_may_refuse_at_the_end() -> None:
    client = scram()
    client.respond(CHALLENGE)
    with pytest.raises(SaslError, match="the server refuses: invalid-proof"):
        client.respond(b"e=invalid-proof")
    assert not client.is_complete


def test_plain_is_one_message() -> None:
    client = PlainClient("alice", "se\u00e9cret")
    assert client.begin() == "\0alice\0se\u00e9cret".encode()
    assert not client.is_complete
    assert client.respond(b"") is None
    assert client.is_complete


def test_plain_has_no_challenge() -> None:
    with pytest.raises(SaslError, match="challenge"):
        PlainClient("alice", "secret").respond(b"more")


def test_commas_and_equals_signs_of_a_name_are_escaped_once() -> None:
    client = ScramClient("SCRAM-SHA-256", "a=b,c", "pencil", nonce="x")
    assert client.begin() == b"n,,n=a=3Db=2Cc,r=x"
