"""Messages that a gateway is sent on its stream."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.adapters.gateways.xds_server.stream_state import Delta, DiscoveryRequest, StreamState

NOTHING = Delta(changed=(), removed=())


def tell(state: StreamState, kind: str, versions: dict[str, str]) -> Delta:
    """Send the whole delta, as the server does."""
    delta = state.delta(kind, versions)
    state.mark_sent(kind, {name: versions[name] for name in delta.changed}, delta.removed)
    return delta


def test_wildcard_subscription_gets_changes_and_removals() -> None:
    state = StreamState()
    assert state.delta("clusters", {"a": "1"}) == NOTHING  # has not asked
    state.on_request(DiscoveryRequest(kind="clusters"))
    assert tell(state, "clusters", {"b": "1", "a": "1"}) == Delta(changed=("a", "b"), removed=())
    assert tell(state, "clusters", {"a": "1", "b": "1"}) == NOTHING
    state.on_request(DiscoveryRequest(kind="clusters", refused="it has no name"))
    assert tell(state, "clusters", {"a": "1", "b": "1"}) == NOTHING
    assert tell(state, "clusters", {"b": "2"}) == Delta(changed=("b",), removed=("a",))
    assert tell(state, "clusters", {"b": "2"}) == NOTHING


def test_reconnect_with_current_versions_gets_nothing() -> None:
    state = StreamState()
    state.on_request(DiscoveryRequest(kind="clusters", has={"a": "1", "b": "1", "gone": "1"}))
    assert tell(state, "clusters", {"a": "1", "b": "2"}) == Delta(changed=("b",), removed=("gone",))


def test_subscription_by_name_gets_these_and_again_when_repeated() -> None:
    state = StreamState()
    state.on_request(DiscoveryRequest(kind="endpoints", subscribed=("a",), has={"a": "1"}))
    assert tell(state, "endpoints", {"a": "1", "b": "1"}) == NOTHING
    state.on_request(DiscoveryRequest(kind="endpoints", subscribed=("b",)))
    assert tell(state, "endpoints", {"a": "1", "b": "1"}) == Delta(changed=("b",), removed=())
    state.on_request(DiscoveryRequest(kind="endpoints", subscribed=("a",)))
    assert tell(state, "endpoints", {"a": "1", "b": "1"}) == Delta(changed=("a",), removed=())
    state.on_request(DiscoveryRequest(kind="endpoints", unsubscribed=("b",)))
    assert tell(state, "endpoints", {"a": "1", "b": "2"}) == NOTHING
    state.resend("endpoints", ["a", "b"])
    assert tell(state, "endpoints", {"a": "1", "b": "2"}) == Delta(changed=("a",), removed=())


_VERSIONS = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("12"))


@given(steps=st.lists(_VERSIONS, max_size=8), has=_VERSIONS)
@settings(max_examples=200)
def test_any_sequence_of_changes_ends_with_the_current_versions(
    steps: list[dict[str, str]], has: dict[str, str]
) -> None:
    state, knows = StreamState(), dict(has)
    state.on_request(DiscoveryRequest(kind="clusters", has=has))
    for standing in steps:
        delta = tell(state, "clusters", standing)
        knows |= {name: standing[name] for name in delta.changed}
        knows = {name: version for name, version in knows.items() if name not in delta.removed}
        assert knows == standing
        assert tell(state, "clusters", standing) == NOTHING
