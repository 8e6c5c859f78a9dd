"""What a gateway lacks, message by message of its stream."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.adapters.xds_server.knowledge import Knowledge, Lacks, Question

NOTHING = Lacks(changed=(), removed=())


def tell(knowledge: Knowledge, kind: str, versions: dict[str, str]) -> Lacks:
    """Tell all that is lacking, as the server does."""
    lacks = knowledge.lacks(kind, versions)
    knowledge.told(kind, {name: versions[name] for name in lacks.changed}, lacks.removed)
    return lacks


def test_who_asks_for_everything_is_told_what_changes_and_what_is_gone() -> None:
    knowledge = Knowledge()
    assert knowledge.lacks("clusters", {"a": "1"}) == NOTHING  # has not asked
    knowledge.hear(Question(kind="clusters"))
    assert tell(knowledge, "clusters", {"b": "1", "a": "1"}) == Lacks(
        changed=("a", "b"), removed=()
    )
    assert tell(knowledge, "clusters", {"a": "1", "b": "1"}) == NOTHING
    knowledge.hear(Question(kind="clusters", refused="it has no name"))
    assert tell(knowledge, "clusters", {"a": "1", "b": "1"}) == NOTHING
    assert tell(knowledge, "clusters", {"b": "2"}) == Lacks(changed=("b",), removed=("a",))
    assert tell(knowledge, "clusters", {"b": "2"}) == NOTHING


def test_who_comes_back_is_told_nothing_that_it_has() -> None:
    knowledge = Knowledge()
    knowledge.hear(Question(kind="clusters", has={"a": "1", "b": "1", "gone": "1"}))
    assert tell(knowledge, "clusters", {"a": "1", "b": "2"}) == Lacks(
        changed=("b",), removed=("gone",)
    )


def test_who_asks_by_name_is_told_of_these_and_again_when_it_asks_again() -> None:
    knowledge = Knowledge()
    knowledge.hear(Question(kind="endpoints", subscribed=("a",), has={"a": "1"}))
    assert tell(knowledge, "endpoints", {"a": "1", "b": "1"}) == NOTHING
    knowledge.hear(Question(kind="endpoints", subscribed=("b",)))
    assert tell(knowledge, "endpoints", {"a": "1", "b": "1"}) == Lacks(changed=("b",), removed=())
    knowledge.hear(Question(kind="endpoints", subscribed=("a",)))
    assert tell(knowledge, "endpoints", {"a": "1", "b": "1"}) == Lacks(changed=("a",), removed=())
    knowledge.hear(Question(kind="endpoints", unsubscribed=("b",)))
    assert tell(knowledge, "endpoints", {"a": "1", "b": "2"}) == NOTHING
    knowledge.forget("endpoints", ["a", "b"])
    assert tell(knowledge, "endpoints", {"a": "1", "b": "2"}) == Lacks(changed=("a",), removed=())


_VERSIONS = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("12"))


@given(steps=st.lists(_VERSIONS, max_size=8), has=_VERSIONS)
@settings(max_examples=200)
def test_whatever_changes_a_gateway_ends_with_what_stands(
    steps: list[dict[str, str]], has: dict[str, str]
) -> None:
    knowledge, knows = Knowledge(), dict(has)
    knowledge.hear(Question(kind="clusters", has=has))
    for standing in steps:
        lacks = tell(knowledge, "clusters", standing)
        knows |= {name: standing[name] for name in lacks.changed}
        knows = {name: version for name, version in knows.items() if name not in lacks.removed}
        assert knows == standing
        assert tell(knowledge, "clusters", standing) == NOTHING
