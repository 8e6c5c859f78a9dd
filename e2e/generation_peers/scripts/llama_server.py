"""`llama_server.py FOLDER PORT SEATS CONTEXT [HOST]`: a Llama folder served by llama.cpp.

Weights are float32. Keys and values are float16, its default: with float32 it takes 2.4 times as
much CPU, because its attention has no fast path for them.

Runs in an environment with xllamacpp, gguf and numpy.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import xllamacpp

NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
OUTSIDE_LAYERS = {
    "model.embed_tokens.weight": "token_embd.weight",
    "lm_head.weight": "output.weight",
    "model.norm.weight": "output_norm.weight",
}
CONTROL, NORMAL = 3, 1


def tensors(path: Path) -> dict[str, Any]:
    """Read a safetensors file of float32."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    found = {}
    for name, one in header.items():
        if name != "__metadata__":
            begin, end = (start + offset for offset in one["data_offsets"])
            found[name] = np.frombuffer(data[begin:end], "<f4").reshape(one["shape"])
    return found


def gguf_name(name: str) -> str:
    """Return GGUF's name of a tensor."""
    if name in OUTSIDE_LAYERS:
        return OUTSIDE_LAYERS[name]
    _, _, layer, *rest, _ = name.split(".")
    return f"blk.{layer}.{NAMES['.'.join(rest)]}.weight"


def rotated(weight: Any, heads: int) -> Any:
    """Order rows as llama.cpp's rotary embedding expects: pairs are neighbours."""
    rows = weight.shape[0]
    return weight.reshape(heads, 2, rows // heads // 2, -1).swapaxes(1, 2).reshape(weight.shape)


def convert(folder: Path, target: Path) -> None:
    """Write the model as GGUF."""
    config = json.loads((folder / "config.json").read_text())
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    writer = gguf.GGUFWriter(str(target), "llama")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_dimension_count(config["hidden_size"] // heads)
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(0)  # all float32
    words = {number: word for word, number in tokenizer["model"]["vocab"].items()}
    kinds = dict.fromkeys(words, NORMAL)
    for one in tokenizer["added_tokens"]:
        words[one["id"]], kinds[one["id"]] = one["content"], CONTROL
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([words[number] for number in range(config["vocab_size"])])
    writer.add_token_types([kinds[number] for number in range(config["vocab_size"])])
    writer.add_token_merges([f"{words[0]} {words[1]}"])  # it must have one
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_add_bos_token(False)
    for name, weight in tensors(folder / "model.safetensors").items():
        called = gguf_name(name)
        rotating = {"attn_q": heads, "attn_k": kv_heads}.get(called.split(".")[-2])
        ordered = weight if rotating is None else rotated(weight, rotating)
        writer.add_tensor(called, np.ascontiguousarray(ordered))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    """Serve until a signal."""
    folder, port, seats, context = Path(sys.argv[1]), *map(int, sys.argv[2:5])
    target = folder.with_suffix(".gguf")
    convert(folder, target)
    options = xllamacpp.CommonParams()
    options.model.path = str(target)
    options.hostnames = [sys.argv[5] if len(sys.argv) > 5 else "127.0.0.1"]
    options.port = port
    options.n_parallel = seats
    options.n_ctx = seats * context
    options.cpuparams.n_threads = 1
    options.cpuparams_batch.n_threads = 1
    options.endpoint_metrics = True
    options.cache_prompt = False
    options.cache_ram_mib = 0  # else it copies the memory of each prompt when a slot becomes idle
    server = xllamacpp.Server(options)
    print("serving", server, flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    main()
