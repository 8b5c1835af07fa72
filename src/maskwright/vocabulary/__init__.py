"""The vocabulary of a model: the exact bytes of every token, and what is built once for it.

``vocabulary``     ``Vocabulary``, which ``maskwright`` exports
``tokenizers``     from the tokenizers of libraries to bytes
``engine_cache``   the engine of a vocabulary; ``compile_cache``, the grammars compiled for it
"""
