"""Linear layers: packed for the CPU, or int8; each computes the plain product."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from headroom_server.torch_generation.model.linear import Int8Linear, PlainLinear, linear, packs

CPU = torch.device("cpu")


@pytest.mark.parametrize("rows", [1, 2, 9, 40])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_layer_computes_the_product(dtype: torch.dtype, with_bias: bool, rows: int) -> None:
    chance = torch.Generator().manual_seed(1)
    weight = torch.randn(48, 32, generator=chance).to(dtype)
    bias = torch.randn(48, generator=chance).to(dtype) if with_bias else None
    given = torch.randn(rows, 32, generator=chance).to(dtype)
    with torch.inference_mode():
        found = linear(weight, bias, int8=False)(given)
        expected = functional.linear(given, weight, bias)
    torch.testing.assert_close(found, expected, rtol=0.02, atol=0.05)


@pytest.mark.parametrize("rows", [1, 40])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_int8_layer_is_near_the_product(dtype: torch.dtype, rows: int) -> None:
    chance = torch.Generator().manual_seed(1)
    weight = torch.randn(48, 64, generator=chance).to(dtype)
    given = torch.randn(rows, 64, generator=chance).to(dtype)
    with torch.inference_mode():
        layer = linear(weight, None, int8=True)
        found, expected = layer(given), functional.linear(given, weight)
    assert isinstance(layer, Int8Linear)
    # each of 64 products is rounded by at most 1/254 of about 3 times 1
    assert (found - expected).abs().max() < 0.3


def test_number_format_without_kernels_is_not_packed() -> None:
    weight = torch.randn(16, 16, dtype=torch.float64)
    assert not packs(torch.float64, CPU)
    assert isinstance(linear(weight, None, int8=False), PlainLinear)


@pytest.mark.skipif(not torch._C._has_mkldnn, reason="torch without oneDNN")
def test_float32_is_packed_on_the_cpu() -> None:
    assert packs(torch.float32, CPU)


def test_kernels_are_kept_for_few_numbers_of_rows() -> None:
    """Each takes memory for as long as the process lives."""
    layer = linear(torch.randn(48, 32), None, int8=False)
    with torch.inference_mode(), torch.profiler.profile(record_shapes=True) as profile:
        sizes = [len(layer(torch.randn(count, 32))) for count in range(1, 513)]
    used = {
        event.input_shapes[0][0]
        for event in profile.events()
        if event.name == "mkldnn::_linear_pointwise"
    }
    assert sizes == list(range(1, 513))
    assert 0 < len(used) <= 48
