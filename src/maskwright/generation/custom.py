"""The loop as a decoding method of transformers: ``model.generate(..., custom_generate=forced_decoding(grammar, tokenizer))``."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import torch
from transformers.generation import logits_process
from transformers.generation import stopping_criteria as ready
from transformers.generation.logits_process import LogitsProcessorList
from transformers.generation.utils import GenerateDecoderOnlyOutput

from maskwright.base.arguments import whole
from maskwright.compiling.compiler import CompiledGrammar
from maskwright.errors import MaskwrightError
from maskwright.generation.batch import Batch
from maskwright.generation.chooser import Chooser
from maskwright.generation.drafts import Drafter, Habits
from maskwright.generation.key_values import KeyValueRows, Prefixes
from maskwright.generation.row import Row, too_short
from maskwright.masks.forced import ForcedText

_OF_EVERY_TOKEN = (
    logits_process.UnbatchedClassifierFreeGuidanceLogitsProcessor,
    logits_process.SynthIDTextWatermarkLogitsProcessor,
)
_OF_A_BATCH = (
    logits_process.ClassifierFreeGuidanceLogitsProcessor,
    logits_process.EncoderRepetitionPenaltyLogitsProcessor,
    logits_process.EncoderNoRepeatNGramLogitsProcessor,
)


def forced_decoding(
    grammars: CompiledGrammar | Sequence[CompiledGrammar], tokenizer: Any, *, batch_size: int = 8
) -> Callable[..., Any]:
    """A decoding method for ``generate`` that writes forced text without asking the model, in the tokenizer's own tokens.

    Greedy search and sampling of decoder-only models; every output is complete within ``max_new_tokens``.  Logits processors
    are asked about each choice, not about each token, and each of several rows has its own copy of those that are not
    transformers' own.  ``grammars``: one for all prompts, or a list with one each.  ``batch_size``: rows at a time.
    Equal prefixes of prompts are read once.  A ``streamer`` is shown one prompt's output, several tokens at a time where
    they are forced.  Raises ``MaskwrightError`` for beams, for stopping criteria other than lengths and end tokens, for
    ``inputs_embeds``, for logits processors that read every token or a whole batch (guidance, SynthID), and for scores, logits and states of the model, which it is not asked for; ``LimitError`` when the
    shortest output does not fit ``max_new_tokens``.  (``stop_strings`` are refused by ``generate`` itself, which asks for a
    tokenizer that it does not hand on; ``Generator`` has ``stop``.)
    """
    listed = list(grammars) if isinstance(grammars, Sequence) else [grammars]
    if not listed:
        raise MaskwrightError("forced_decoding needs a compiled grammar, or a list with one a prompt")
    whole(batch_size, "batch_size", low=1)
    for grammar in listed:
        if not hasattr(grammar, "matcher"):
            raise MaskwrightError(f"a compiled grammar is needed, not {type(grammar).__name__}")
    forced = ForcedText(tokenizer, listed[0].vocabulary)
    habits = {id(grammar): Habits() for grammar in listed}

    def decode(
        model: Any,
        input_ids: torch.LongTensor,
        logits_processor: Any = None,
        stopping_criteria: Any = None,
        generation_config: Any = None,
        streamer: Any = None,
        **model_options: Any,
    ) -> Any:
        if streamer is None:
            streamer = _streamer_of_generate()
        try:
            _check(model, generation_config, stopping_criteria, streamer, len(input_ids), model_options)
            if len(input_ids) % len(listed):
                raise MaskwrightError(
                    f"{len(input_ids)} rows cannot be shared out among {len(listed)} grammars"
                )
            processors = _of_rows(logits_processor, model, len(input_ids))
            share = len(input_ids) // len(listed)
            room = generation_config.max_length - input_ids.shape[1]
            mask = model_options.get("attention_mask")
            rows = []
            for index, ids in enumerate(input_ids):
                prompt = (ids if mask is None else ids[mask[index].bool()]).tolist()
                grammar = listed[index // share]
                least = len(grammar.matcher().shortest_completion()) + 1
                if least > room:
                    raise too_short("max_new_tokens", least, room)
                samples = bool(generation_config.do_sample)
                seed = int(torch.randint(2**62, ())) if samples else None
                rows.append(
                    Row(
                        grammar.matcher(),
                        prompt,
                        room,
                        Chooser(
                            _of_row(processors[index], index, len(ids) - len(prompt)),
                            samples=samples,
                            seed=seed,
                        ),
                        forced=forced,
                        drafter=Drafter(prompt, habits[id(grammar)], forced),
                    )
                )
            _run(Batch(KeyValueRows(model, Prefixes()), batch_size), rows, streamer)
            sequences = _sequences(input_ids, rows, generation_config)
            return (
                GenerateDecoderOnlyOutput(sequences=sequences)
                if generation_config.return_dict_in_generate
                else sequences
            )
        finally:
            # Whoever reads what is streamed would wait for ever, behind an error as well.
            if streamer is not None:
                streamer.end()

    return decode


def _check(
    model: Any, config: Any, criteria: Any, streamer: Any, count: int, options: dict[str, Any]
) -> None:
    if model.config.is_encoder_decoder:
        raise MaskwrightError("forced_decoding is for decoder-only models; Generator takes others as well")
    if config.num_beams and config.num_beams > 1:
        raise MaskwrightError(
            "forced_decoding is greedy search or sampling: for beams pass LogitsProcessor instead"
        )
    for criterion in criteria or ():
        if not isinstance(criterion, (ready.MaxLengthCriteria, ready.EosTokenCriteria)):
            raise MaskwrightError(
                f"{type(criterion).__name__} would cut outputs where they are not complete: leave it out"
            )
    if streamer is not None and count > 1:
        raise MaskwrightError("a streamer shows one prompt at a time")
    if options.get("inputs_embeds") is not None:
        raise MaskwrightError("forced_decoding reads tokens: pass input_ids instead of inputs_embeds")
    if config.return_dict_in_generate:
        for name in ("output_scores", "output_logits", "output_attentions", "output_hidden_states"):
            if getattr(config, name, None):
                raise MaskwrightError(
                    f"{name}: forced_decoding does not ask the model about every token; LogitsProcessor does"
                )


def _streamer_of_generate() -> Any:
    """The streamer that was passed to ``generate``, which does not hand it on to methods that are functions."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "generate" and {"streamer", "custom_generate"} <= frame.f_locals.keys():
            return frame.f_locals.get("streamer")
        frame = frame.f_back
    return None


def _of_rows(processors: Any, model: Any, count: int) -> list[list[Any]]:
    """The processors of each row: what one remembers of its texts is not the others'."""
    found: list[list[Any]] = [[] for _ in range(count)]
    for each in processors or ():
        name = type(each).__name__
        if isinstance(each, _OF_EVERY_TOKEN) or (count > 1 and isinstance(each, _OF_A_BATCH)):
            raise MaskwrightError(
                f"{name} reads every token, or several rows at once, and forced_decoding asks it about single choices: "
                "leave it out, or pass LogitsProcessor instead of forced_decoding"
            )
        try:
            # Those of transformers remember nothing.
            shared = count == 1 or type(each).__module__ == logits_process.__name__
            copies = [each] * count if shared else [copy.deepcopy(each, {id(model): model}) for _ in found]
        except Exception as error:
            raise MaskwrightError(
                f"{name} cannot be copied, and each row needs its own: pass one prompt at a time ({error})"
            ) from error
        for row, own in zip(found, copies, strict=True):
            row.append(own)
    return found


def _of_row(processors: list[Any], index: int, padding: int) -> Any:
    """The processors of a row, which is read alone and without its padding."""
    found = LogitsProcessorList()
    for each in processors:
        given: Any = getattr(each, "prompt_ignore_length", None)
        if isinstance(each, logits_process.RepetitionPenaltyLogitsProcessor) and given is not None:
            each = copy.copy(each)
            length = int(given if isinstance(given, int) else given[index])
            each.prompt_ignore_length = max(length - padding, 0)
        if isinstance(each, logits_process.PrefixConstrainedLogitsProcessor):
            each = _at_place(each, index // each._num_beams)
        found.append(each)
    return found


def _at_place(of_batch: Any, place: int) -> Any:
    """A function of a prompt's place and its tokens, for the rows of one prompt."""
    allowed = of_batch._prefix_allowed_tokens_fn
    return logits_process.PrefixConstrainedLogitsProcessor(lambda _, ids: allowed(place, ids), 1)


def _run(batch: Batch, rows: list[Row], streamer: Any) -> None:
    batch.submit(rows)
    shown = 0
    while batch.is_busy:
        for row in batch.step():
            if row.error is not None:
                raise row.error
        if streamer is not None and len(rows[0].ids) > shown:
            streamer.put(torch.tensor(rows[0].ids[shown:]))
            shown = len(rows[0].ids)
    if streamer is not None:
        streamer.put(torch.tensor([rows[0].vocabulary.eos_ids[0]]))


def _sequences(input_ids: Any, rows: list[Row], config: Any) -> Any:
    """Prompts, outputs and EOS, padded on the right as ``generate`` does."""
    end = rows[0].vocabulary.eos_ids[0]
    pad = end if config.pad_token_id is None else config.pad_token_id
    width = max(len(row.ids) for row in rows) + 1
    written = [[*row.ids, end] + [pad] * (width - len(row.ids) - 1) for row in rows]
    return torch.cat(
        [input_ids, torch.tensor(written, dtype=input_ids.dtype, device=input_ids.device)], dim=1
    )
