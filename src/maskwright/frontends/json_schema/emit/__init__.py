"""Groups -> rules: ``emitter``, with ``objects``, ``arrays``, and ``indentation``."""
