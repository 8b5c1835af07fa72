"""What decoding does with masks: bitmasks, tries of token sequences, text that is forced.

``bitmask``       rows of bits, and how logits are masked (``bitmask_kernel`` on a GPU); ``mask_table``, masks that stay on the device
``trie``          sets of token sequences (``trie_torch`` for batches)
``forced``        text that a grammar leaves no choice about, in the tokenizer's own tokens
``speculation``   what speculative decoding needs: ``JumpForward``, ``translate_draft``, ``deepest_path``

``maskwright`` exports the functions of ``bitmask``, ``MaskTable`` and ``TokenTrie``.
"""
