"""The device of the models in tests: ``make test-gpu`` names a GPU, otherwise it is the CPU."""

from __future__ import annotations

import os

DEVICE = os.environ.get("MASKWRIGHT_TEST_DEVICE", "cpu")
"""As torch spells it."""
