"""Settings of all tests."""

from __future__ import annotations

import os

# The models here are tiny: waiting for a second thread takes longer than its help saves.
os.environ.setdefault("OMP_NUM_THREADS", "1")
