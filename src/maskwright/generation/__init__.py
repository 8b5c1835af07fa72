"""From a prompt to a finished output: the loop behind ``Generator``.

``options``    what a caller may ask for, checked
``prompts``    a text or messages -> token ids of a prompt
``outputs``    an output type -> a grammar, and a text -> its value
``key_values``, ``encoder_decoder``  the model with one row of its key-value cache for each running output
``forced``     text that the grammar leaves no choice about, in the tokenizer's own tokens
``drafts``     guesses at the next tokens, checked by the model in the pass that reads them
``row``        one output while it is written
``batch``      rows that run together, join and leave
``background`` the same for callers that wait asynchronously
``beams``      beam search, by transformers
``candidates`` several candidates that are weighed and resampled, by ``maskwright.sampling``
``custom``     the loop as a decoding method of transformers' ``generate``
``stops``      whether stop texts make sense for an output
``results``    what comes out

Needs torch and transformers.
"""
