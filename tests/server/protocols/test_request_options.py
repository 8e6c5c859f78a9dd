"""Deadlines, priorities, tenants and SLO classes in headers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom_server.batching_composition.runners import slo_classes
from headroom_server.errors import InvalidRequestError
from headroom_server.protocols.request_options import (
    RequestOptions,
    SloClass,
    parse_request_options,
)
from headroom_server.protocols.retry_headers import RETRY_HEADERS, is_retry
from headroom_server.settings import Settings

CLASSES = {"default": SloClass(4, 1.0), "gold": SloClass(1, 0.1), "batch": SloClass(9, None)}
CHAT = {"chat": SloClass(first_token_deadline_s=0.5)}


@pytest.mark.parametrize(
    ("headers", "classes", "grpc_s", "expected"),
    [
        pytest.param({}, {}, None, RequestOptions(None, 5, ""), id="nothing is said"),
        pytest.param({"accept": "*/*"}, {}, None, RequestOptions(), id="other headers say nothing"),
        pytest.param({"x-request-timeout": "0.1"}, {}, None, RequestOptions(0.1), id="a timeout"),
        pytest.param({}, {}, 2.0, RequestOptions(2.0), id="gRPC carries its own"),
        pytest.param(
            {"x-request-timeout": "3"}, {}, 2.0, RequestOptions(2.0), id="the earlier counts"
        ),
        pytest.param(
            {"x-request-priority": "0"}, {}, None, RequestOptions(None, 0), id="most urgent"
        ),
        pytest.param({"x-tenant": "a"}, {}, None, RequestOptions(None, 5, "a"), id="a tenant"),
        pytest.param(
            {"x-retry-attempt": "2"}, {}, None, RequestOptions(retried=True), id="a retry"
        ),
        pytest.param({}, CLASSES, None, RequestOptions(1.0, 4), id="the default class"),
        pytest.param(
            {"x-slo-class": "gold"},
            CLASSES,
            None,
            RequestOptions(0.1, 1, slo_class="gold"),
            id="a class",
        ),
        pytest.param(
            {"x-slo-class": "batch"},
            CLASSES,
            None,
            RequestOptions(None, 9, slo_class="batch"),
            id="no deadline",
        ),
        pytest.param(
            {"x-slo-class": "gold", "x-request-timeout": "5", "x-request-priority": "7"},
            CLASSES,
            None,
            RequestOptions(5.0, 7, slo_class="gold"),
            id="the request's own word counts before its class's",
        ),
        pytest.param(
            {"x-slo-class": "chat"},
            CHAT,
            None,
            RequestOptions(first_token_deadline_s=0.5, slo_class="chat"),
            id="a class with a deadline of the first token",
        ),
        pytest.param(
            {"x-slo-class": "chat", "x-first-token-timeout": "2"},
            CHAT,
            None,
            RequestOptions(first_token_deadline_s=2.0, slo_class="chat"),
            id="the request's own deadline of the first token",
        ),
    ],
)
def test_options_come_from_headers_and_classes(
    headers: dict[str, str],
    classes: dict[str, SloClass],
    grpc_s: float | None,
    expected: RequestOptions,
) -> None:
    raw = {name.encode(): value.encode() for name, value in headers.items()}
    assert parse_request_options(raw, classes, deadline_s=grpc_s) == expected


@pytest.mark.parametrize(
    ("header", "first", "further"),
    [
        ("x-retry-attempt", "0", "1"),
        ("x-stainless-retry-count", "0", "1"),
        ("amz-sdk-request", "attempt=1; max=3", "attempt=2; max=3"),
        ("amz-sdk-request", "ttl=20260101T000000Z;attempt=1", "ttl=20260101T000000Z;attempt=12"),
        ("grpc-previous-rpc-attempts", "0", "1"),
        ("x-envoy-attempt-count", "1", "2"),
    ],
)
def test_further_try_is_recognized_by_header(header: str, first: str, further: str) -> None:
    assert is_retry({header.encode(): further.encode()})
    assert not is_retry({header.encode(): first.encode()})
    assert is_retry({header.encode(): first.encode(), b"x-retry-attempt": b" 3 "})


@given(st.sampled_from(sorted(RETRY_HEADERS)), st.binary(max_size=40))
def test_any_value_of_a_foreign_header_is_accepted(header: bytes, value: bytes) -> None:
    found = parse_request_options({header: value})
    assert found == RequestOptions(retried=is_retry({header: value}))


@pytest.mark.parametrize("value", ["", "-1", "one", "1.5", "9" * 40, "attempt=", "attempt=two"])
def test_value_that_is_not_understood_is_no_further_try(value: str) -> None:
    assert not any(is_retry({header: value.encode()}) for header in RETRY_HEADERS)


@pytest.mark.parametrize(
    ("header", "value", "words"),
    [
        pytest.param("x-request-timeout", "1e9", "at most 86400; got '1e9'", id="too long"),
        pytest.param("x-request-timeout", "nan", "above 0", id="no number"),
        pytest.param("x-request-timeout", "1_0", "above 0", id="underscore"),
        pytest.param("x-request-timeout", "1e1", "above 0", id="exponent"),
        pytest.param("x-request-timeout", "+1", "above 0", id="sign"),
        pytest.param("x-request-timeout", "0x1", "above 0", id="hexadecimal"),
        pytest.param("x-request-priority", "10", "from 0 (most urgent) to 9; got '10'", id="ten"),
        pytest.param("x-request-priority", "-1", "got '-1'", id="below zero"),
        pytest.param("x-request-priority", "²", "a digit", id="no ASCII digit"),
        pytest.param("x-tenant", "t" * 129, "at most 128", id="a long name"),
        pytest.param("x-slo-class", "tin", "(batch, default, gold); got 'tin'", id="no class"),
    ],
)
def test_wrong_header_is_reported_with_rule_and_value(header: str, value: str, words: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        parse_request_options({header.encode(): value.encode()}, CLASSES)
    assert caught.value.message.startswith(f"{header} must be ")
    assert words in caught.value.message


@given(
    st.sampled_from([b"x-request-timeout", b"x-request-priority", b"x-tenant", b"x-slo-class"]),
    st.binary(max_size=300),
)
def test_arbitrary_bytes_give_valid_options_or_a_short_error(header: bytes, value: bytes) -> None:
    refused = ""
    options = RequestOptions()
    try:
        options = parse_request_options({header: value}, CLASSES)
    except InvalidRequestError as error:
        refused = error.message
    assert len(refused) < 300
    assert options.deadline_s is None or 0.0 < options.deadline_s <= 86_400.0
    assert 0 <= options.priority <= 9


def test_deadline_setting_applies_to_requests_without_one() -> None:
    classes = slo_classes(Settings(deadline_s=0.25), None)
    assert parse_request_options({}, classes).deadline_s == 0.25
    assert parse_request_options({b"x-request-timeout": b"2"}, classes).deadline_s == 2.0
    assert slo_classes(Settings(), None) == {}
