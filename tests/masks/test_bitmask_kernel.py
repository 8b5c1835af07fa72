"""The fused kernel against torch's own operations, bit for bit: in Triton's interpreter on the CPU, and on a GPU where there is one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from places import ROOT

pytest.importorskip("torch", reason="the kernel works on tensors")
pytest.importorskip(
    "triton", reason="Triton is not installed: make test-engines has it in an environment of its own"
)

import torch

import maskwright as mw
from maskwright.masks import bitmask

ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
RUNS = ON_GPU or INTERPRETED
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
needs_device = pytest.mark.skipif(
    not RUNS, reason="runs in Triton's interpreter, below, or on a GPU, and here is neither"
)


def test_all_of_this_in_the_interpreter() -> None:
    """The interpreter has to be chosen before Triton is imported."""
    if RUNS:
        return
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", __file__],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-1000:]
    found = re.search(r"(\d+) passed", run.stdout)
    assert found is not None and int(found.group(1)) > 40, run.stdout[-3000:]


@pytest.mark.skipif(INTERPRETED, reason="the interpreter stands in for the compiler")
@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp32", "fp64"])
@pytest.mark.parametrize("rows", [True, False])
def test_the_compiler_takes_it(dtype: str, rows: bool) -> None:
    """Triton compiles for a GPU that is not there, and refuses more than its interpreter does."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from maskwright.masks.bitmask_kernel import _BLOCK, _deny

    given = {"HAS_LOGIT_ROWS": rows, "HAS_MASK_ROWS": rows, "BLOCK": _BLOCK}
    kinds = dict.fromkeys(_deny.arg_names, "i32") | dict.fromkeys(given, "constexpr")
    kinds |= {"logits": f"*{dtype}", "masks": "*i32", "logit_rows": "*i32", "mask_rows": "*i32"}
    made = triton.compile(ASTSource(_deny, kinds, constexprs=given), target=GPUTarget("cuda", 90, 32))
    assert "st.global" in made.asm["ptx"]


def random_logits(rows: int, width: int, dtype: Any) -> Any:
    made = torch.randn(rows, width, generator=torch.Generator().manual_seed(width))
    made[:, ::7] = float("inf")
    made[:, 1::11] = float("nan")
    return made.to(dtype).to(DEVICE)


def random_masks(rows: int, words: int) -> Any:
    drawn = np.random.default_rng(words).integers(-(2**31), 2**31, (rows, words), dtype=np.int64)
    drawn[0] = -1
    drawn[-1] = 0
    return torch.from_numpy(drawn.astype(np.int32)).to(DEVICE)


def same(a: Any, b: Any) -> bool:
    as_bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[a.element_size()]
    return torch.equal(a.contiguous().view(as_bits), b.contiguous().view(as_bits))


def by_torch(monkeypatch: pytest.MonkeyPatch, *arguments: Any) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(bitmask, "_kernel_failed", True)
        bitmask._deny_on_device(torch, *arguments)


@needs_device
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("width", [1, 31, 32, 33, 1536, 4096, 4097, 9001])
def test_as_torch_does(dtype: Any, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from maskwright.masks.bitmask_kernel import deny

    for words in {1, (width + 31) // 32}:
        logits, masks = random_logits(4, width, dtype), random_masks(4, words)
        expected = logits.clone()
        by_torch(monkeypatch, expected, masks, None, None)
        deny(logits, masks)
        assert same(logits, expected)


@needs_device
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("at", [[], [2], [3, 0], [0, 1, 2, 3, 4]])
def test_some_rows_and_masks_in_any_order(dtype: Any, at: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    from maskwright.masks.bitmask_kernel import deny

    chosen = torch.tensor(at, dtype=torch.int32, device=DEVICE)
    # The rows of a wider table, as logits of padded vocabularies are.
    storage, masks = random_logits(5, 700, dtype), random_masks(9, 16)
    logits = storage[:, :600]
    expected, untouched = storage.clone(), storage[:, 600:].clone()
    which = torch.tensor([8, 0, 4, 4, 2][: len(at)], dtype=torch.int32, device=DEVICE)
    for mask_rows in (None, which):
        by_torch(
            monkeypatch,
            expected[:, :600],
            masks[: len(at)] if mask_rows is None else masks,
            chosen,
            mask_rows,
        )
        deny(logits, masks, chosen, mask_rows)
        assert same(logits, expected[:, :600])
    assert same(storage[:, 600:], untouched)


@needs_device
def test_no_logits() -> None:
    from maskwright.masks.bitmask_kernel import deny

    deny(torch.zeros((0, 64), device=DEVICE), random_masks(1, 2))
    deny(torch.zeros((1, 0), device=DEVICE), torch.zeros((1, 0), dtype=torch.int32, device=DEVICE))


@pytest.mark.skipif(not ON_GPU, reason="there is no GPU")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("indices", [None, [0, 3]])
def test_it_is_what_apply_uses_on_a_gpu(dtype: Any, indices: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from maskwright.masks import bitmask_kernel

    launches = []
    monkeypatch.setattr(
        bitmask, "_imported_kernel", lambda: lambda *given: (launches.append(1), bitmask_kernel.deny(*given))
    )
    logits, masks = random_logits(4, 1000, dtype), random_masks(4, 30)
    expected = logits.clone()
    by_torch(
        monkeypatch, expected, masks if indices is None else masks[indices],
        None if indices is None else torch.tensor(indices, device=DEVICE), None,
    )  # fmt: skip
    for given in (masks, masks.cpu(), masks.cpu().numpy()):
        applied = logits.clone()
        mw.apply_token_bitmask_inplace(applied, given, indices)
        assert same(applied, expected)
    assert len(launches) == 3
