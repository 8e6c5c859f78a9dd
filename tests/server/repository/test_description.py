"""`model.toml` as a value: every field, every rule, and no traceback."""

from __future__ import annotations

import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headroom_server.engine import LoadError, Work
from headroom_server.protocols.request_options import SloClass
from headroom_server.repository.description import Description
from headroom_server.repository.description_file import parse
from headroom_server.repository.formats import Format
from headroom_server.repository.samples import works
from headroom_server.repository.signatures import agreed
from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec

FULL = """
engine = "torch"
architecture = "my_models.encoder:Encoder"
weights = "encoder.safetensors"
sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
max_batch_size = 8
batches = [1, 4, 8]
lengths = [16, 64]
compile = true

[parameters]
width = 256

[[inputs]]
name = "tokens"
datatype = "INT64"
shape = [-1]

[[outputs]]
name = "score"
datatype = "FP32"

[mask]
name = "mask"
datatype = "BOOL"

[classes.interactive]
priority = 1
deadline_s = 0.1

[classes.batch]
priority = 9

[[warm_up]]
inputs = { tokens = [101, 7592, 102] }
"""
PROGRAM = """
format = "export"
weights = "model.pt2"
sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
inputs = [{ name = "x", datatype = "FP32", shape = [4] }]
outputs = [{ name = "y", datatype = "FP32", shape = [3] }]
"""
IMAGE = Signature(
    inputs=(TensorSpec("image", "FP32", (2, 2)), TensorSpec("flip", "BOOL")),
    outputs=(TensorSpec("y", "FP32"),),
)
TOKENS = Signature(
    inputs=(TensorSpec("a", "INT64", (-1,)), TensorSpec("b", "INT64", (2, -1))),
    outputs=(TensorSpec("y", "FP32"),),
    lengths=(4, 8),
)


def described(text: str) -> Description:
    return parse(text.encode(), "model.toml")


def test_description_reads_every_field() -> None:
    one = described(FULL)
    assert one.declared == Signature(
        inputs=(TensorSpec("tokens", "INT64", (-1,)),),
        outputs=(TensorSpec("score", "FP32"),),
        lengths=(16, 64),
        batches=(1, 4, 8),
        mask=TensorSpec("mask", "BOOL", (-1,)),
    )
    assert one.is_class
    assert one.compile
    assert dict(one.parameters) == {"width": 256}
    assert one.slo_classes == {"interactive": SloClass(1, 0.1), "batch": SloClass(9, None)}


def test_description_with_an_architecture_is_enough() -> None:
    one = described('architecture = "mlp"\n[parameters]\nsizes = [4, 3]')
    assert (one.engine, one.format, one.weights_name) == (
        "torch",
        Format.SAFETENSORS,
        "model.safetensors",
    )
    assert (one.declared, one.max_batch_size, one.lengths, one.compile) == (None, None, (), False)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "architecture is required: a registered name, or module:Class"),
        ("architecture = 1", "architecture: must be a valid string; got 1"),
        (
            "architecture = 'a b'",
            "architecture: must be a registered architecture or module:Class; got 'a b'",
        ),
        ("architecture = 'a'\narchitectur = 'b'", "architectur: unknown field"),
        ("architecture = 'a'\nmax_batch_size = 0", "max_batch_size: .* greater .* 1; got 0"),
        ("architecture = 'a'\nmax_batch_size = '8'", "max_batch_size: .* integer; got '8'"),
        ("architecture = 'a'\nmax_batch_size = true", "max_batch_size: .* integer; got True"),
        (
            "architecture = 'a'\nbatches = [1, 4, 4]",
            r"batches: must be ascending, .*; got \[1, 4, 4\]",
        ),
        ("architecture = 'a'\nbatches = [0]", r"batches\[0\]: .* 1; got 0"),
        (
            "architecture = 'a'\nbatches = [1, 4]\nmax_batch_size = 8",
            "max_batch_size must be the largest of batches, 4, or omitted; got 8",
        ),
        ("architecture = 'a'\ncompile = 'yes'", "compile: .* boolean; got 'yes'"),
        ("architecture = 'a'\nsha256 = 'abc'", "sha256: .*; got 'abc'"),
        ("architecture = 'a'\nformat = 'onnx'", "format: .*'aotinductor'; got 'onnx'"),
        ("architecture = 'a'\nweights = 'm.pt'", "weights must not be a pickle, .*save_file"),
        ("architecture = 'a'\nweights = 'm.BIN'", "must not be a pickle"),
        ("architecture = 'a'\nweights = '../m.safetensors'", "a file next to model.toml"),
        ("architecture = 'a'\nweights = '/m.safetensors'", "a file next to model.toml"),
        ("architecture = 'a'\nweights = '.safetensors'", "a file next to model.toml"),
        ("architecture = 'a'\nweights = 'm.pt2'", "must not be a program with format"),
        ("architecture = 'a'\nweights = 'm.onnx'", "must have the suffix .safetensors"),
        ("architecture = 'a'\n[[inputs]]\nname = 'x'", r"inputs\[0\].datatype is required"),
        (
            "architecture = 'a'\n[[inputs]]\nname = 'x'\ndatatype = 'FP8'",
            r"inputs\[0\].datatype: must be one of BOOL, .*; got 'FP8'",
        ),
        (
            "architecture = 'a'\n[[inputs]]\nname = 'x'\ndatatype = 'FP32'\nshape = [0]",
            r"inputs\[0\].shape\[0\]: must be at least 1, or -1 if dynamic; got 0",
        ),
        (
            "architecture = 'a'\n[[inputs]]\nname = 'x'\ndatatype = 'FP32'\nshape = [-1, -1]",
            r"inputs\[0\]: tensor x: at most one dimension",
        ),
        (
            "architecture = 'a'\n[[inputs]]\nname = 'x'\ndatatype = 'FP32'",
            "inputs and outputs must both be set, or neither",
        ),
        (FULL.replace("lengths = [16, 64]", ""), "a model must have lengths if"),
        (FULL.replace("shape = [-1]", "shape = [3]"), "a model must have lengths if"),
        (FULL.replace("priority = 1", "priority = 10"), "classes.interactive.priority: .*; got 10"),
        (FULL.replace("0.1", "nan"), "classes.interactive.deadline_s: .*; got nan"),
        (FULL.replace("0.1", "0"), "classes.interactive.deadline_s: .* greater than 0; got 0"),
        (
            FULL.replace("classes.batch", "classes.'a b'"),
            "classes.a b: must be a name of letters, digits",
        ),
        (FULL.replace("deadline_s", "deadline"), "classes.interactive.deadline: unknown field"),
        (FULL.replace("inputs = {", "input = {"), r"warm_up\[0\].input: unknown field"),
        (PROGRAM.replace("sha256", "# "), "sha256 is required with format = 'export'"),
        (PROGRAM.replace("outputs", "# "), "outputs is required with format = 'export'"),
        (PROGRAM + "architecture = 'mlp'", "architecture must be omitted: a program"),
        (PROGRAM.replace("model.pt2", "model.pt"), "must not be a pickle"),
        (PROGRAM.replace("model.pt2", "m.safetensors"), "must have the suffix .pt2"),
        (
            "engine = 'emulated'\narchitecture = 'a'",
            "architecture must be omitted for an emulated engine",
        ),
        ("engine = 'emulated'\nlengths = [4]", "must be omitted for an emulated engine"),
        ("architecture = 'a'\n[emulated]", "emulated must be omitted unless engine = 'emulated'"),
        (
            "engine = 'emulated'\n[emulated]\nfixed_cost_s = 0\nper_item_cost_s = 0",
            "emulated: fixed_cost_s .* above 0; got 0",
        ),
        ("x = " + "[" * 5000, "nested so deeply"),
        (".".join(["a"] * 500_000) + " = 1", "a key must have at most 32 parts"),
        ("[" + " . ".join(["'a'"] * 40) + "]", "a key must have at most 32 parts"),
        ("x = " + "9" * 5000, "model.toml: .*digits"),
        ("x =", "model.toml: Invalid value"),
        ("#" * 2**20 + "#", "must have at most 1048576 bytes; got 1048577"),
    ],
    ids=lambda value: repr(value)[-40:],
)
def test_wrong_field_is_reported_with_rule_and_value(text: str, line: str) -> None:
    with pytest.raises(LoadError, match=f"model.toml: .*{line}|{line}") as raised:
        described(text)
    assert all(one.startswith("model.toml: ") for one in str(raised.value).splitlines())


def test_all_mistakes_are_reported_at_once() -> None:
    with pytest.raises(LoadError) as raised:
        described("architecture = 1\nformat = 'onnx'\nlenghts = [4]")
    lines = str(raised.value).splitlines()
    assert [line.split(": ")[1] for line in lines] == ["architecture", "format", "lenghts"]


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_parsed_or_refused(data: bytes) -> None:
    with pytest.raises(LoadError, match=r"^model\.toml: "):
        parse(data, "model.toml")


MUTANT = st.sampled_from(
    [*"[]{}=\"'\n.,-#", "-1", "0", "nan", "true", "[[", "1979-05-27", "\\u0000"]
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from([FULL, PROGRAM]),
    st.lists(
        st.tuples(
            st.integers(0, 10**4),
            st.integers(0, 12),
            st.one_of(MUTANT, st.text(string.printable, max_size=8)),
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_mutated_description_is_parsed_or_refused(
    text: str, cuts: list[tuple[int, int, str]]
) -> None:
    for cut, length, inserted in cuts:
        at = cut % (len(text) + 1)
        text = text[:at] + inserted + text[at + length :]
    one, mistake = read(text)
    assert (one is None) == mistake.startswith("model.toml: ")
    if one is not None and one.declared is not None:
        assert agreed(one, None) == one.declared


def read(text: str) -> tuple[Description | None, str]:
    try:
        return described(text), ""
    except LoadError as error:
        return None, str(error)


@pytest.mark.parametrize(
    ("declared", "own", "words"),
    [
        ("", None, "inputs and outputs are required"),
        (
            "inputs = [{name='x', datatype='FP32'}]\noutputs = [{name='y', datatype='FP32'}]",
            IMAGE,
            r"inputs must be .* image FP32 \[2, 2\], flip BOOL \[\]; got x FP32 \[\]",
        ),
        ("lengths = [4]", IMAGE, "lengths, batches: a model must have lengths if"),
    ],
)
def test_declaration_contradicting_the_model_is_refused(
    declared: str, own: Signature | None, words: str
) -> None:
    with pytest.raises(LoadError, match=words):
        agreed(described(f"architecture = 'a'\n{declared}"), own)


def test_description_overrides_lengths_and_batches_of_the_model() -> None:
    one = described("architecture = 'a'\nlengths = [2]\nbatches = [1, 2]")
    assert agreed(one, TOKENS) == Signature(
        TOKENS.inputs, TOKENS.outputs, lengths=(2,), batches=(1, 2)
    )
    assert agreed(described("architecture = 'a'"), TOKENS) == TOKENS


def sampled(inputs: str, signature: Signature) -> list[Work]:
    return works(
        described(f"architecture = 'a'\n[[warm_up]]\ninputs = {inputs}").warm_up, signature
    )


def test_sample_is_one_item_of_work() -> None:
    (work,) = sampled("{ image = [[1, 2.5], [3, 4]], flip = true }", IMAGE)
    assert (work.items, work.length) == (1, 0)
    assert {name: list(numbers) for name, numbers in work.inputs.items()} == {
        "image": [1.0, 2.5, 3.0, 4.0],
        "flip": [1],
    }
    (work,) = sampled("{ a = [1, 2, 3], b = [[1, 2, 3], [4, 5, 6]] }", TOKENS)
    assert (work.items, work.length, list(work.inputs["b"])) == (1, 3, [1, 2, 3, 4, 5, 6])


@pytest.mark.parametrize(
    ("inputs", "signature", "words"),
    [
        ("{ image = [[1, 2], [3, 4]] }", IMAGE, r"exactly \['flip', 'image'\]; got \['image'\]"),
        (
            "{ image = [[1, 2], [3]], flip = true }",
            IMAGE,
            "image: axis 1 must have 2 elements .*; got 1",
        ),
        ("{ image = [[1, 2], [3, 'x']], flip = true }", IMAGE, "element 3 is a string"),
        ("{ image = [[1, 2], [3, 1e300]], flip = true }", IMAGE, "finite values"),
        ("{ image = 1979-05-27, flip = true }", IMAGE, "image: .*axis 0"),
        ("{ a = [1, 2], b = [[1], [2]] }", TOKENS, r"must have one length; got \[1, 2\]"),
        ("{ a = [], b = [[], []] }", TOKENS, "a length from 1 to 8; got 0"),
        ("{ a = [1,2,3,4,5,6,7,8,9], b = [[0,0,0,0,0,0,0,0,0],[]] }", TOKENS, "1 to 8; got 9"),
        ("{ a = 1, b = [[1], [2]] }", TOKENS, "a must be nested lists of shape"),
        ("{ a = [1], b = [1, 2] }", TOKENS, "b must be nested lists of shape"),
        ("{ a = [1], b = [[1], [2, 3]] }", TOKENS, "b: axis 1 must have 1 elements .*; got 2"),
    ],
)
def test_sample_that_does_not_fit_is_refused(inputs: str, signature: Signature, words: str) -> None:
    with pytest.raises(LoadError, match=r"warm_up\[0\].inputs.*" + words):
        sampled(inputs, signature)
