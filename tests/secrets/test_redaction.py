"""Redaction of foreign text: the parts that are removed, and the parts that stay."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.adapters.redaction import LONGEST_LOOKED_AT, bare, redacted, sent_in


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Authorization: Bearer abc.def-123", "Authorization: Bearer [redacted]"),
        ("authorization=Basic dXNlcjpwYXNz", "authorization=Basic [redacted]"),
        ("at http://me:pass@host:9090/x", "at http://[redacted]@host:9090/x"),
        ("token eyJhbGciOiJ9.eyJzdWIi.c2ln here", "token [redacted] here"),
        ('{"password": "secret1"}', '{"password": "[redacted]"}'),
        ("client_secret=abcdef&x=1", "client_secret=[redacted]&x=1"),
        ('pods "a" is forbidden: exceeded quota: q', 'pods "a" is forbidden: exceeded quota: q'),
        ("https://host/path@sha256:aaa", "https://host/path@sha256:aaa"),
        ('secrets "token" not found', 'secrets "token" not found'),
    ],
)
def test_credentials_are_known_by_their_form(text: str, left: str) -> None:
    assert redacted(text) == left


def test_sent_credential_is_known_by_its_value() -> None:
    env = [{"name": "A", "value": "planted"}, {"name": "B", "value": "on"}, {"name": "C"}]
    manifest = {"spec": {"containers": [{"env": env, "image": "x"}]}, "env": "text"}
    assert list(sent_in(manifest)) == ["planted", "on"]
    assert redacted("got planted, on", sent_in(manifest)) == "got [redacted], on"


def test_data_of_a_sent_secret_is_known_by_its_value() -> None:
    secret = {"kind": "Secret", "data": {"tls.key": "cGxhbnRlZA==", "tls.crt": None}}
    assert redacted("invalid: cGxhbnRlZA==", sent_in(secret)) == "invalid: [redacted]"


@settings(max_examples=60)
@given(st.text(max_size=30), st.text("abcXYZ019-_", min_size=8, max_size=40), st.text(max_size=30))
def test_no_text_around_it_saves_a_known_secret(before: str, secret: str, after: str) -> None:
    assert secret not in redacted(before + secret + after, [secret]).replace("[redacted]", " ")
    assert f"Bearer {secret}" not in redacted(f"{before}\nAuthorization: Bearer {secret}\n{after}")


@pytest.mark.parametrize("text", ["://" * 9000, "bearer " * 9000, "eyJ" * 9000, "password=" * 9000])
def test_redaction_of_a_long_text_takes_little_time(text: str) -> None:
    begun_s = time.process_time()
    assert len(redacted(text)) <= 2 * LONGEST_LOOKED_AT
    assert time.process_time() - begun_s < 0.5


@pytest.mark.parametrize(
    ("header", "credential"),
    [
        ("Bearer abc.def-123", "abc.def-123"),  # of a kubeconfig
        ("bearer abc.def-123", "abc.def-123"),  # of a pod's account
        ("Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("abc.def-123", "abc.def-123"),
        ("two words", "two words"),
    ],
)
def test_a_credential_is_known_without_its_scheme(header: str, credential: str) -> None:
    assert bare(header) == credential
    assert credential not in redacted(f"no one knows {credential} here", [bare(header)])
