"""Bitmasks at the edges: all widths around a word, devices, precisions, views, and misfits."""

from __future__ import annotations

import numpy as np
import pytest

import maskwright as mw

WORDS = 9


def random_masks(rows: int) -> np.ndarray:
    return np.random.default_rng(0).integers(-(2**31), 2**31, (rows, WORDS), dtype=np.int32)


def allowed(masks: np.ndarray, width: int) -> np.ndarray:
    """Bit ``id % 32`` of word ``id // 32``, one at a time."""
    return (
        np.array(
            [[i < 32 * WORDS and int(row[i // 32]) >> i % 32 & 1 for i in range(width)] for row in masks]
        )
        > 0
    )


def as_numpy(logits):
    return logits


def as_torch(logits):
    return pytest.importorskip("torch").from_numpy(logits)


def as_cuda(logits):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return torch.from_numpy(logits).cuda()


@pytest.mark.parametrize("convert", [as_numpy, as_torch, as_cuda])
@pytest.mark.parametrize("width", [257, 258, 287, 288, 289, 1024])
def test_denied_logits_are_minus_infinity_and_others_untouched(convert, width):
    masks = random_masks(3)
    before = np.random.default_rng(1).standard_normal((3, width)).astype(np.float32)
    for indices in (None, [2, 0]):
        logits = convert(before.copy())
        mw.apply_token_bitmask_inplace(logits, masks, indices)
        expected = np.where(allowed(masks, width), before, -np.inf)
        if indices is not None:
            expected[1] = before[1]
        assert np.array_equal(logits if convert is as_numpy else logits.cpu().numpy(), expected)


@pytest.mark.parametrize("convert", [as_numpy, as_torch])
def test_strided_rows(convert):
    masks = random_masks(1)
    whole = np.zeros((2, 600), dtype=np.float32)
    mw.apply_token_bitmask_inplace(convert(whole)[1, ::2], masks[0])
    assert np.array_equal(whole[1, ::2] == 0, allowed(masks, 300)[0])
    assert not whole[0].any()
    assert not whole[1, 1::2].any()


def test_precisions_and_mixed_arrays():
    torch = pytest.importorskip("torch")
    masks = random_masks(2)
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        logits = torch.zeros(2, 257, dtype=dtype)
        mw.apply_token_bitmask_inplace(logits, torch.from_numpy(masks))
        assert np.array_equal((logits == 0).numpy(), allowed(masks, 257))
    weights = torch.zeros(2, 257, requires_grad=True)
    mw.apply_token_bitmask_inplace(weights, masks)
    assert np.array_equal((weights == 0).numpy(), allowed(masks, 257))
    plain = np.zeros((2, 257), dtype=np.float16)
    mw.apply_token_bitmask_inplace(plain, torch.from_numpy(masks))
    assert np.array_equal(plain == 0, allowed(masks, 257))


def test_with_indices_the_numbers_of_rows_may_differ():
    masks = random_masks(5)
    logits = np.zeros((4, 257))
    mw.apply_token_bitmask_inplace(logits, masks, [3])
    assert np.array_equal(logits[3] == 0, allowed(masks, 257)[3])
    assert not logits[:3].any()


@pytest.mark.parametrize(
    ("logits", "masks", "indices", "message"),
    [
        (np.zeros((2, 257)), [[0] * WORDS] * 2, None, "numpy array or a torch tensor"),
        (np.zeros(()), random_masks(1), None, "one or two dimensions"),
        (np.zeros((2, 256)), random_masks(2), None, "more than 256"),
        (np.zeros((2, 0)), random_masks(2), None, "more than 0"),
        (np.zeros((2, 257)), random_masks(2), [-1], "indices"),
        (np.zeros((2, 257)), random_masks(2), [0.5], "integer"),
        (np.broadcast_to(0.0, (2, 257)), random_masks(2), None, "read-only"),
        (np.zeros((2, 257), dtype=">f4"), random_masks(2), None, "byte order"),
        (
            np.zeros(2 * 257 * 4 + 1, dtype=np.uint8)[1:].view("f4").reshape(2, 257),
            random_masks(2),
            None,
            "unaligned",
        ),
        (np.zeros((2, 257), dtype=np.longdouble), random_masks(2), None, "64 bit"),
        (np.zeros((2, 257), dtype=np.int32), random_masks(2), None, "64 bit"),
    ],
)
def test_misfits_are_bitmask_errors(logits, masks, indices, message):
    with pytest.raises(mw.BitmaskError, match=message):
        mw.apply_token_bitmask_inplace(logits, masks, indices)


@pytest.mark.parametrize("sizes", [(1, 2.5), ("1", 5)])
def test_sizes_are_integers(sizes):
    with pytest.raises(mw.BitmaskError, match="integer"):
        mw.allocate_token_bitmask(*sizes)


def test_a_batch_needs_a_table():
    vocabulary = mw.Vocabulary.from_bytes([b"1", b"</s>"], eos_ids=1)
    matchers = [mw.compile_json_schema({"const": 1}, vocabulary).matcher()]
    for wrong, message in ((np.zeros(1, dtype=np.int32), "1 matchers"), (None, "numpy array")):
        with pytest.raises(mw.BitmaskError, match=message):
            mw.fill_next_token_bitmasks(matchers, wrong)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("indices", [None, [2, 0], []])
def test_the_path_of_other_devices_gives_the_same(dtype, indices):
    torch = pytest.importorskip("torch")
    masks = random_masks(3)
    here = torch.randn(3, 300).to(getattr(torch, dtype))
    there = here.clone()
    mw.apply_token_bitmask_inplace(here, masks, indices)
    # A tensor that needs a gradient takes that path on the CPU as well.
    there.requires_grad = True
    mw.apply_token_bitmask_inplace(there, torch.from_numpy(masks), indices)
    assert torch.equal(here, there.detach())


@pytest.mark.parametrize("threads", [1, 3, None])
def test_many_rows_in_many_threads(threads):
    masks = random_masks(50)
    logits = np.random.default_rng(1).standard_normal((50, 257))
    expected = np.where(allowed(masks, 257), logits, -np.inf)
    mw.set_threads(threads)
    try:
        mw.apply_token_bitmask_inplace(logits, masks)
    finally:
        mw.set_threads()
    assert np.array_equal(logits, expected)


def test_a_view_of_a_mask_and_masks_that_are_not_contiguous():
    vocabulary = mw.Vocabulary.from_bytes([b"1", b"2", b"</s>"], eos_ids=2)
    matcher = mw.compile_json_schema({"const": 1}, vocabulary).matcher()
    logits = np.zeros(3)
    mw.apply_token_bitmask_inplace(logits, matcher.next_token_bitmask())
    assert list(logits) == [0, -np.inf, -np.inf]
    masks = random_masks(4)
    logits = np.zeros((2, 257))
    mw.apply_token_bitmask_inplace(logits, np.asfortranarray(masks)[::2])
    assert np.array_equal(logits == 0, allowed(masks[::2], 257))


# --- what says something else of itself


def batch(rows):
    vocabulary = mw.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [None], eos_ids=256)
    compiled = mw.compile_regex("[a-c]+", vocabulary)
    return [compiled.matcher() for _ in range(rows)]


class Liar:
    """Says that it is larger than it is."""

    def __init__(self, array):
        self.array = array
        self.shape = (1000, array.shape[1])
        self.dtype = array.dtype

    def __len__(self):
        return 1000

    def numpy(self):
        return self.array


class LyingArray(np.ndarray):
    @property
    def shape(self):
        return (1000, 9)

    def __len__(self):
        return 1000


class LyingList(list):
    def __len__(self):
        return 1

    def __iter__(self):
        return super().__iter__()


def test_a_batch_believes_the_memory_alone():
    for few in (np.zeros((2, 9), np.int32), np.zeros((0, 9), np.int32)):
        for wrong in (Liar(few), few.view(LyingArray)):
            with pytest.raises(mw.BitmaskError, match="1000 matchers need"):
                mw.fill_next_token_bitmasks(batch(1000), wrong)
    with pytest.raises(mw.BitmaskError, match="3 matchers need"):
        mw.fill_next_token_bitmasks(LyingList(batch(3)), np.zeros((1, 9), np.int32))
    right = np.zeros((3, 9), np.int32)
    for array in (Liar(right), right.view(LyingArray)):
        right[:] = 0
        mw.fill_next_token_bitmasks(batch(3), array)
        assert right[:, 3].tolist() == [0b1110] * 3
    mw.fill_next_token_bitmasks([], np.zeros((0, 9), np.int32))


def test_logits_that_say_something_else_of_themselves():
    masks = random_masks(2)
    logits = np.zeros((2, 257))
    mw.apply_token_bitmask_inplace(logits.view(LyingArray), masks)
    assert np.array_equal(logits == 0, allowed(masks, 257))
    logits[:] = 0
    mw.apply_token_bitmask_inplace(logits, masks.view(LyingArray))
    assert np.array_equal(logits == 0, allowed(masks, 257))
    with pytest.raises(mw.BitmaskError, match="must be a numpy array"):
        mw.apply_token_bitmask_inplace(logits, Liar(masks))


def test_tensors_that_say_something_else_of_themselves():
    torch = pytest.importorskip("torch")

    class LyingTensor(torch.Tensor):
        @property
        def shape(self):
            return torch.Size((1000, 257))

    masks = random_masks(2)
    whole = torch.zeros(2, 257)
    with pytest.raises(mw.BitmaskError):
        mw.apply_token_bitmask_inplace(whole.as_subclass(LyingTensor), np.zeros((1000, WORDS), np.int32))
    assert not whole.any()
    with pytest.raises(mw.BitmaskError):
        mw.apply_token_bitmask_inplace(torch.zeros(2, 257).to_sparse(), masks)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: np.zeros((9, 3), np.int32).T, "contiguous"),
        (lambda: np.zeros((3, 18), np.int32)[:, ::2], "contiguous"),
        (lambda: np.zeros((3, 9), np.int32)[:, ::-1], "contiguous"),
        (lambda: np.zeros(3 * 36 + 1, np.uint8)[1:].view(np.int32).reshape(3, 9), "int32"),
        (lambda: memoryview(bytearray(3 * 36 + 1))[1:].cast("i", (3, 9)), "aligned"),
        (lambda: np.zeros((3, 1, 9), np.int32), "3 dimensions"),
        (lambda: np.zeros((3, 9), ">i4"), "int32"),
        (lambda: np.zeros((3, 9), np.uint32), "int32"),
        (lambda: np.zeros((3, 9), np.float32), "int32"),
        (lambda: np.zeros((3, 9), np.int64), "int32"),
        (lambda: np.broadcast_to(np.zeros(9, np.int32), (3, 9)), "cannot be written"),
        (lambda: np.zeros((3, 10), np.int32), "has 9 words"),
        (lambda: np.zeros((3, 8), np.int32), "has 9 words"),
        (lambda: bytes(108), "cannot be written"),
        (lambda: bytearray(108), "int32"),
    ],
)
def test_odd_layouts_are_refused(make, message):
    for fill in (
        lambda mask: mw.fill_next_token_bitmasks(batch(3), mask),
        lambda mask: batch(1)[0].fill_next_token_bitmask(mask, 1),
    ):
        with pytest.raises(mw.BitmaskError, match=message):
            fill(make())


@pytest.mark.parametrize("cut", [np.s_[::2], np.s_[::-2], np.s_[3:6], np.s_[5:2:-1]])
def test_odd_layouts_that_fit(cut):
    whole = np.full((6, 9), 7, np.int32)
    matchers = batch(3)
    assert matchers[1].accept_token(ord("a"))
    mw.fill_next_token_bitmasks(matchers, whole[cut])
    for i, matcher in enumerate(matchers):
        one = np.zeros(9, np.int32)
        matcher.fill_next_token_bitmask(one)
        assert np.array_equal(whole[cut][i], one)
        whole[cut][i] = 7
        matcher.fill_next_token_bitmask(whole[cut], i)
        assert np.array_equal(whole[cut][i], one)
    whole[cut] = 7
    assert (whole == 7).all()
