"""From a prompt to a finished output: ``Generator``, and the loop behind it.

``generator``  from a prompt and an output type to a value (``maskwright.Generator``); ``default_model``, where none is named (``gguf_llama`` reads it)
``options``    what a caller may ask for, checked
``jobs``       a prompt and what to write behind it; what was written
``prompts``    a text or messages -> token ids of a prompt
``outputs``    an output type -> a grammar, and a text -> its value; ``partial``, that of an unfinished text
``key_values``, ``encoder_decoder``, ``model_cache``  the model with one row of its key-value cache for each running output
``drafts``     guesses at the next tokens, checked by the model in the pass that reads them
``row``        one output while it is written
``batch``      rows that run together, join and leave
``background`` the same for callers that wait asynchronously
``beams``      beam search, by transformers
``candidates`` several candidates that are weighed and resampled, by ``maskwright.sampling``
``logits_processor``  for transformers' own ``generate`` (``maskwright.hf``)
``custom``     the loop as a decoding method of transformers' ``generate``
``stops``      whether stop texts make sense for an output
``results``    what comes out; ``trace``, what the model wanted at each of its tokens; ``metrics``, what became of all of them, in rates

``maskwright`` and ``maskwright.hf`` export what is public.  Needs torch and transformers.
"""
