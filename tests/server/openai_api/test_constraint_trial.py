"""Constraints that would end or stop the process that compiles them are refused."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from headroom_server.errors import QueueFullError
from headroom_server.generation.text import constraint_memory
from headroom_server.generation.text.constraint_owner import Owner
from headroom_server.generation.text.constraint_trial import QUICK, ConstraintTrial
from headroom_server.generation.text.constraint_work import MOST_S, PER_TOKEN_S, ConstraintWork
from headroom_server.generation.text.grammar import GuidanceGrammars
from headroom_server.generation.token_grammar import TooComplexError

EOS = 256


def tokenizer_json() -> str:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {character: number for number, character in enumerate(alphabet)}
    library = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    library.decoder = decoders.ByteLevel()
    library.add_special_tokens(["<eos>"])
    return str(library.to_str())


JSON = tokenizer_json()


@pytest.fixture(scope="module")
def trial() -> Iterator[ConstraintTrial]:
    one = ConstraintTrial(JSON, {EOS})
    yield one
    one.close()


def chain_of_references(length: int) -> str:
    named = {f"d{number}": {"$ref": f"#/$defs/d{number + 1}"} for number in range(length)}
    named[f"d{length}"] = {"type": "string"}
    return orjson.dumps({"$defs": named, "$ref": "#/$defs/d0"}).decode()


def chain_of_rules(length: int) -> str:
    rules = [f"r{number}: r{number + 1}" for number in range(length)]
    return "\n".join(["start: r0", *rules, f'r{length}: "b"'])


def patterns_that_must_all_match(count: int) -> str:
    return "start: A\nA: " + " & ".join(f"/.*a.{{{number}}}b.*/" for number in range(count))


def schema_of_patterns(count: int) -> str:
    each = {"type": "string", "pattern": "[a-z]{1,50}"}
    named = {f"p{number}": each for number in range(count)}
    return orjson.dumps({"type": "object", "properties": named}).decode()


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        pytest.param("json_schema", chain_of_references(6000), id="stack, schema"),
        pytest.param("grammar", chain_of_rules(5000), id="stack, grammar"),
        pytest.param("grammar", patterns_that_must_all_match(20), id="time and memory"),
        pytest.param("regex", "(", id="invalid"),
    ],
)
def test_constraint_that_harms_its_process_is_refused_and_the_next_is_compiled(
    trial: ConstraintTrial, kind: str, text: str
) -> None:
    grammars = GuidanceGrammars(JSON, {EOS}, quick=trial, slow=trial)
    with pytest.raises(ValueError, match=r"."):
        grammars.compile(kind, text)
    assert grammars.compile("regex", "ab").allowed()
    assert grammars.compile("json_schema", chain_of_references(50)).allowed()


def test_constraint_beyond_ordinary_ones_is_left_to_the_slow_lane() -> None:
    quick, slow = ConstraintTrial(JSON, {EOS}, QUICK), ConstraintTrial(JSON, {EOS})
    grammars = GuidanceGrammars(JSON, {EOS}, quick=quick, slow=slow)
    demanding = schema_of_patterns(1200)
    assert grammars.compile("json_schema", schema_of_patterns(5), quick=True).allowed()
    with pytest.raises(TooComplexError, match="too much time or memory"):
        grammars.compile("json_schema", demanding, quick=True)
    assert grammars.compile("json_schema", demanding).allowed()
    assert grammars.compile("json_schema", demanding, quick=True).allowed()
    quick.close()
    slow.close()


class OnceTrial:
    """Refuses every constraint, and counts."""

    def __init__(self) -> None:
        self.tried = 0

    def cost_bytes(self, kind: str, text: str) -> int:
        self.tried += 1
        raise TooComplexError("a constraint that takes too much time to compile")


def test_constraint_that_was_found_to_take_long_is_not_tried_quickly_again() -> None:
    quick = OnceTrial()
    grammars = GuidanceGrammars(JSON, {EOS}, quick=quick, slow=Costs())
    for _ in range(3):
        with pytest.raises(TooComplexError, match="too much time"):
            grammars.compile("regex", "ab", quick=True)
    assert quick.tried == 1


@pytest.mark.parametrize("decoder", [None, decoders.Metaspace(), decoders.WordPiece()])
def test_tokenizer_that_the_library_cannot_read_refuses_constraints_in_one_process(
    decoder: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    library = Tokenizer(models.BPE(vocab={"a": 0}, merges=[]))
    if decoder is not None:
        library.decoder = decoder
    trial = ConstraintTrial(library.to_str(), ())
    for _ in range(2):
        with pytest.raises(ValueError, match="for this model's tokenizer none can be compiled"):
            trial.cost_bytes("regex", "a")
    trial.close()
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("constraints cannot be compiled for the tokenizer: can't determine")


def test_process_that_ended_is_replaced(trial: ConstraintTrial) -> None:
    assert trial.cost_bytes("regex", "ab") >= 0
    trial.close()
    assert trial.cost_bytes("regex", "ab") >= 0


class Costs:
    """Every constraint takes as many MiB as its text has characters."""

    def cost_bytes(self, kind: str, text: str) -> int:
        return len(text) << 20 if kind == "regex" else 0


def test_constraints_in_use_are_bounded_by_their_memory() -> None:
    grammars = GuidanceGrammars(JSON, {EOS}, quick=Costs(), slow=Costs())
    running = [grammars.compile("regex", letter * 40) for letter in "abc"]
    assert grammars.in_use_bytes == 120 << 20
    with pytest.raises(QueueFullError):
        grammars.compile("regex", "d" * 40)
    again = [grammars.compile("regex", "a" * 40) for _ in range(128)]
    assert grammars.in_use_bytes == 120 << 20
    running.clear()
    again.clear()
    grammars.compile("regex", "d" * 40)
    assert grammars.in_use_bytes <= constraint_memory.KEPT_BYTES


@pytest.mark.parametrize(
    ("attackers", "left"),
    [
        pytest.param([Owner("10.0.0.1", "loud")], 64, id="a tenant, behind the same gateway"),
        pytest.param([Owner("10.0.0.2", str(one)) for one in range(50)], 32, id="made-up tenants"),
    ],
)
def test_constraints_in_use_of_others_leave_room(attackers: list[Owner], left: int) -> None:
    """Before, all others got 429 while the answers of one tenant lasted."""
    grammars = GuidanceGrammars(JSON, {EOS}, quick=Costs(), slow=Costs())
    running = []
    for number in range(300):
        with contextlib.suppress(QueueFullError):
            owner = attackers[number % len(attackers)]
            running.append(grammars.compile("regex", f"{number:04}", owner=owner))
    assert len(running) > 30
    quiet = Owner("10.0.0.1", "quiet")
    running.append(grammars.compile("regex", "q" * left, owner=quiet))
    with pytest.raises(QueueFullError):
        grammars.compile("regex", "r" * 200, owner=quiet)


def test_kept_constraints_of_others_are_not_compiled_again() -> None:
    grammars = GuidanceGrammars(JSON, {EOS}, quick=Costs(), slow=Costs())
    quiet, loud = Owner("10.0.0.1", "quiet"), Owner("10.0.0.1", "loud")
    grammars.compile("choice", '["quiet"]', owner=quiet)
    for number in range(100):
        for form in (f"{number:040}", f"{number}"):
            with contextlib.suppress(QueueFullError):
                grammars.compile("regex", form, owner=loud)
        assert grammars.known("choice", '["quiet"]') is not None


class HeldTrial:
    """Tries the constraint "slow" until it is released."""

    def __init__(self) -> None:
        self.began, self.free = threading.Event(), threading.Event()

    def cost_bytes(self, kind: str, text: str) -> int:
        if text == "slow":
            self.began.set()
            assert self.free.wait(timeout=10)
        return 0


def test_compiled_constraint_is_known_while_another_one_compiles() -> None:
    trial = HeldTrial()
    grammars = GuidanceGrammars(JSON, {EOS}, quick=trial, slow=trial)
    assert grammars.known("regex", "quick") is None
    grammars.compile("regex", "quick")
    with ThreadPoolExecutor(2) as threads:
        slow = threads.submit(grammars.compile, "regex", "slow")
        try:
            assert trial.began.wait(timeout=10)
            assert threads.submit(grammars.known, "regex", "quick").result(timeout=5) is not None
            assert grammars.known("regex", "slow") is None
        finally:
            trial.free.set()
        assert slow.result(timeout=10).allowed()


A, B = 64, 65
"""Bytes `a` and `b` in the alphabet of the tokenizer."""
AMBIGUOUS = (
    "start: r*\nr: "
    + " | ".join(f"r{number}" for number in range(400))
    + "\n"
    + "\n".join(f'r{number}: "a" s{number}\ns{number}: "" | "b{number}"' for number in range(400))
)
"""Every token adds 1600 items, 12.6 KiB, and 2 ms."""


def test_answer_whose_grammar_takes_too_much_work_is_ended() -> None:
    grammars = GuidanceGrammars(JSON, {EOS}, quick=Costs(), slow=Costs())
    endless = grammars.compile("grammar", AMBIGUOUS)
    taken = 0
    while endless.allowed() and endless.accept(A):
        taken += 1
    assert taken < 2000
    usual = grammars.compile("regex", "a*")
    assert all(usual.allowed() and usual.accept(A) for _ in range(2000))


def test_constraint_whose_states_are_exhausted_is_compiled_again_for_the_next_answer() -> None:
    grammars, chance = GuidanceGrammars(JSON, {EOS}, quick=Costs(), slow=Costs()), random.Random(1)
    constraint = "regex", "(a|b)*a(a|b){30}"
    answers = [grammars.compile(*constraint) for _ in range(16)]
    while all(one.allowed() and one.accept(chance.choice((A, B))) for one in answers):
        pass
    answers.clear()
    following = grammars.compile(*constraint)
    assert all(following.allowed() and following.accept(A) for _ in range(100))


def test_answers_together_may_work_for_as_long_as_one_and_the_greatest_ends_first() -> None:
    everything = ConstraintWork()
    small, greatest = everything.begun(), everything.begun()
    small.spend(0.1)
    for _ in range(int(MOST_S / PER_TOKEN_S)):
        greatest.step()
    greatest.spend(MOST_S / 2)
    assert small.step()
    assert not greatest.step()
    greatest.close()
    assert everything.spent_s == pytest.approx(0.1)
