"""Constrained infilling for diffusion language models: always in the language, always as long as the canvas.

slots     a canvas as slots: fixed, open, optional
reading   can the open slots be filled, one token each?
canvas    a canvas with a witness: commits, edits, exact masks
criteria  weaker criteria from the literature, as baselines
schedule  which slots to fill in a step, and with what
model     what a model is
steps     one step: what becomes of a canvas by logits
speculation  fewer calls for the same text: asked ahead, or judged by the causal mode
decode    the loop
showing   canvases for people: texts of slots, frames of a film
particles weighted fillings: sequential Monte Carlo over the steps of the loop
"""

from maskwright.diffusion.canvas import Canvas
from maskwright.diffusion.decode import infill, infill_steps
from maskwright.diffusion.model import MaskedDiffusionModel
from maskwright.diffusion.particles import infill_smc
from maskwright.diffusion.schedule import Schedule
from maskwright.diffusion.showing import frames
from maskwright.diffusion.slots import EMPTY, OPEN, Gap
from maskwright.diffusion.steps import Step

__all__ = [
    "EMPTY", "OPEN", "Canvas", "Gap", "MaskedDiffusionModel", "Schedule", "Step", "frames", "infill", "infill_smc",
    "infill_steps",
]  # fmt: skip
