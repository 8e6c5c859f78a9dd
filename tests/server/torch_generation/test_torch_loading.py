"""Folders that cannot be served say what to change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from headroom_server.engine import LoadError
from headroom_server.torch_generation.executor import TorchExecutor
from headroom_server.torch_generation.loading import ExecutorOptions
from headroom_server.torch_generation.model.linear import linear
from headroom_server.torch_generation.model.memory import available_bytes
from headroom_server.torch_generation.model.model_shape import shape_of
from headroom_server.torch_generation.model.rope import inverse_frequencies
from support.torch_generation_world import make_model

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 99,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model_type": "gpt2"}, "model_type must be one of llama, mistral, qwen2, qwen3"),
        ({"model_type": None}, "model_type must be"),
        ({"hidden_size": 0}, "hidden_size must be an integer from 1"),
        ({"hidden_size": "32"}, "hidden_size must be an integer from 1"),
        ({"vocab_size": 10**9}, "vocab_size must be an integer from 1"),
        ({"num_hidden_layers": True}, "num_hidden_layers must be an integer"),
        ({"num_key_value_heads": 3}, "must be a multiple of num_key_value_heads; got 4 and 3"),
        ({"head_dim": 5}, "head_dim must be even; got 5"),
        ({"hidden_act": "gelu"}, "hidden_act must be 'silu'; got 'gelu'"),
        ({"rope_scaling": {"rope_type": "longrope"}}, "rope_type must be one of"),
        ({"rope_scaling": [1]}, "rope_scaling must be an object"),
        ({"rope_theta": -1}, "rope_theta must be a positive number"),
        ({"rope_theta": 1}, "rope_theta must be above 1; got 1"),
        ({"architectures": 5}, "architectures must have one"),
        ({"quantization_config": {"bits": 4}}, "quantization_config must be absent"),
        ({"compression_config": {"bits": 4}}, "compression_config must be absent"),
        ({"architectures": ["LlamaForSequenceClassification"]}, "architectures must have one"),
        ({"is_causal": False}, "is_causal must be absent: .* got False"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor must be absent"),
        ({"final_logit_softcapping": 30.0}, "final_logit_softcapping must be absent"),
        ({"num_local_experts": 8}, "num_local_experts must be absent"),
        ({"sliding_window": 9}, "sliding_window must be absent in a llama; got 9"),
        ({"layer_types": ["full_attention"]}, "layer_types must be a list .* kinds, 2"),
        ({"layer_types": ["full_attention", "linear_attention"]}, "got 'linear_attention'"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "sliding_window must be set"),
        (
            {"rope_parameters": {"full_attention": {"rope_type": "default"}}},
            "rope_parameters must be the same for all layers",
        ),
        (
            {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}},
            "partial_rotary_factor must be absent; got 0.5",
        ),
    ],
)
def test_an_unsupported_configuration_names_field_and_rule(
    fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(LoadError, match=message):
        shape_of({**CONFIG, **fields})


@pytest.mark.parametrize(
    "fields",
    [
        {"hidden_act": "swish"},
        {"is_causal": True, "partial_rotary_factor": 1.0, "num_experts": 0},
        {"sliding_window": 64},
        {"architectures": ["LLaMAForCausalLM"]},
    ],
)
def test_field_that_changes_nothing_is_accepted(fields: dict[str, Any]) -> None:
    assert shape_of({**CONFIG, **fields}).windows == (None, None)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"model_type": "mistral"}, (4096,) * 2),
        ({"model_type": "mistral", "sliding_window": None}, (None,) * 2),
        ({"model_type": "qwen2"}, (None,) * 2),
        ({"use_sliding_window": True, "max_window_layers": 0, "sliding_window": 9}, (9, 9)),
        ({"use_sliding_window": True, "max_window_layers": 1}, (None, 4096)),
        ({"use_sliding_window": True, "num_hidden_layers": 30}, (None,) * 28 + (4096,) * 2),
    ],
)
def test_windows_are_those_of_transformers_configuration(
    fields: dict[str, Any], expected: tuple[int | None, ...]
) -> None:
    assert shape_of({**CONFIG, "model_type": "qwen3", **fields}).windows == expected


@pytest.mark.parametrize("name", ["attention_factor", "mscale"])
def test_yarn_parameter_that_is_no_number_is_named(name: str) -> None:
    yarn = {"rope_type": "yarn", "factor": 4.0, "mscale": 1.0, "mscale_all_dim": 1.0, name: "x"}
    with pytest.raises(
        LoadError, match=f"{name} must be a number from 1e-06 to below 1e\\+09; got 'x'"
    ):
        inverse_frequencies(shape_of({**CONFIG, "rope_scaling": yarn}))


@pytest.mark.parametrize("kind", ["linear", "llama3", "yarn"])
@pytest.mark.parametrize("name", ["factor", "low_freq_factor", "beta_fast", "beta_slow"])
@pytest.mark.parametrize("value", [1e-308, 1e-7, 1e-6, 9e8, 1e9, 1e308])
def test_extreme_scaling_is_refused_or_has_finite_angles(
    kind: str, name: str, value: float
) -> None:
    given = {"rope_type": kind, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 1e9 - 1}
    shape = shape_of({**CONFIG, "rope_scaling": {**given, name: value}})
    try:
        frequencies, scale = inverse_frequencies(shape)
    except LoadError:
        return
    assert torch.isfinite(frequencies * shape.context_tokens * scale).all()


def test_a_field_that_lacks_is_named() -> None:
    with pytest.raises(LoadError, match="vocab_size must be"):
        shape_of({name: value for name, value in CONFIG.items() if name != "vocab_size"})


def load(folder: Path, **options: Any) -> None:
    TorchExecutor(folder, ExecutorOptions(**options)).load()


@pytest.mark.parametrize("text", ["{", "[]", "\xff", "[" * 100_000])
def test_a_damaged_configuration_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text, encoding="latin-1")
    with pytest.raises(LoadError, match=r"config\.json must be"):
        load(tmp_path)


@pytest.mark.parametrize(
    "name", ["../secret.safetensors", "/a.safetensors", "..", "", "pytorch_model.bin", "\ud800", 5]
)
def test_an_index_that_leaves_its_folder_is_refused(tmp_path: Path, name: object) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    index = {"weight_map": {"model.embed_tokens.weight": name}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(LoadError, match="must name files of its own folder"):
        load(tmp_path)


def test_an_index_that_nests_too_deeply_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map":' + "[" * 100_000)
    with pytest.raises(LoadError, match="must be JSON with a weight_map"):
        load(tmp_path)


def test_weights_that_are_there_twice_are_refused(tmp_path: Path) -> None:
    make_model(tmp_path, "llama", shard="60KB")
    make_model(tmp_path / "merged", "llama", seed=1)
    single = "model.safetensors"
    (tmp_path / "merged" / single).rename(tmp_path / single)
    with pytest.raises(LoadError, match=r"model.safetensors must be absent next to"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "float8"}, "number format must be one of"),
        ({"context_tokens": 65}, "context must be from 1 to the model's 64 tokens; got 65"),
        ({}, "model.safetensors does not exist or cannot be read: add the file"),
    ],
)
def test_what_cannot_be_loaded_says_why(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    with pytest.raises(LoadError, match=message):
        load(tmp_path, **options)


@pytest.mark.parametrize("kept", [0, 4, 2000])
def test_file_of_weights_that_is_cut_off_is_named(tmp_path: Path, kept: int) -> None:
    make_model(tmp_path, "llama")
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:kept])
    with pytest.raises(LoadError, match="must be a whole file of safetensors"):
        load(tmp_path)


def test_weights_that_exceed_the_memory_are_refused_before_they_are_read(tmp_path: Path) -> None:
    huge = {**CONFIG, "hidden_size": 1 << 16, "intermediate_size": 1 << 20}
    (tmp_path / "config.json").write_text(json.dumps({**huge, "num_hidden_layers": 500}))
    with pytest.raises(LoadError, match="memory must hold the weights"):
        load(tmp_path)


def test_the_containers_limit_bounds_the_available_memory(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("5000\n")
    (tmp_path / "memory.current").write_text("2000\n")
    assert available_bytes(torch.device("cpu"), tmp_path) == 3000
    (tmp_path / "memory.max").write_text("max\n")
    assert available_bytes(torch.device("cpu"), tmp_path) > 3000


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_int8_weights_are_near_the_originals(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    weight, rows = torch.randn(64, 96).to(dtype), torch.randn(5, 96).to(dtype)
    plain, small = (linear(weight, None, int8=one)(rows).float() for one in (False, True))
    assert (plain - small).norm() / plain.norm() < 0.02
