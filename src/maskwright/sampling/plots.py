"""Pictures of a run: who descends from whom, and the effective sample size.

HTML is written without any library; PNG needs matplotlib.
"""

from __future__ import annotations

import html
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from maskwright.errors import MaskwrightError
from maskwright.sampling.logspace import Booleans, Floats, Integers

if TYPE_CHECKING:
    from maskwright.sampling.posterior import Posterior

_WIDTH, _HEIGHT, _ESS_HEIGHT, _MARGIN = 900, 420, 140, 40


def plot_genealogy(posterior: Posterior, path: Path, title: str = "") -> None:
    """Write the genealogy and the history of effective sample sizes to ``path`` (``.png`` or ``.html``).

    Lines lead from every particle to its ancestor; dark ones belong to particles that were not replaced
    by others until the end.
    """
    if path.suffix == ".html":
        path.write_text(_html(posterior, title), encoding="utf-8")
    elif path.suffix == ".png":
        _png(posterior, path, title)
    else:
        raise MaskwrightError(f"plots are .png or .html, not {path.suffix!r}")


def _sizes(posterior: Posterior) -> Floats:
    return np.array([np.mean(size) for size in posterior.ess_history])


def _survivors(genealogy: list[Integers], count: int) -> list[Booleans]:
    """For each resampling, which of the particles behind it have descendants at the end."""
    alive = np.ones(count, dtype=bool)
    found = []
    for ancestors in reversed(genealogy):
        found.append(alive)
        before = np.zeros(count, dtype=bool)
        before[ancestors[alive]] = True
        alive = before
    return found[::-1]


def _png(posterior: Posterior, path: Path, title: str) -> None:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.collections import LineCollection
        from matplotlib.figure import Figure
    except ImportError:
        raise MaskwrightError(
            'PNG plots need matplotlib: pip install "maskwright[plots]"; or write .html'
        ) from None
    figure = Figure(figsize=(9, 6), layout="constrained")
    FigureCanvasAgg(figure)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    count = len(posterior.log_weights)
    for shade, is_alive in (("0.8", False), ("black", True)):
        lines = [
            [(step, ancestors[i]), (step + 1, i)]
            for step, (ancestors, alive) in enumerate(
                zip(posterior.genealogy, _survivors(posterior.genealogy, count), strict=True)
            )
            for i in np.flatnonzero(alive == is_alive)
        ]
        upper.add_collection(LineCollection(lines, colors=shade, linewidths=0.7))
    upper.set(xlim=(0, max(1, len(posterior.genealogy))), ylim=(-1, count), ylabel="particle", title=title)
    sizes = _sizes(posterior)
    lower.plot(np.arange(1, len(sizes) + 1), sizes)
    lower.set(xlabel="resampling step", ylabel="effective sample size", ylim=(0, None))
    figure.savefig(path, dpi=120)


def _html(posterior: Posterior, title: str) -> str:
    count, steps = len(posterior.log_weights), max(1, len(posterior.genealogy))
    sizes = _sizes(posterior)
    top = max(float(sizes.max(initial=1.0)), 1.0)

    def x(step: float) -> str:
        return f"{_MARGIN + (_WIDTH - 2 * _MARGIN) * step / steps:.1f}"

    def y(particle: float) -> str:
        return f"{_MARGIN + (_HEIGHT - 2 * _MARGIN) * particle / max(1, count - 1):.1f}"

    drawn: dict[bool, list[str]] = {False: [], True: []}
    for step, (ancestors, alive) in enumerate(
        zip(posterior.genealogy, _survivors(posterior.genealogy, count), strict=True)
    ):
        for i, parent in enumerate(ancestors.tolist()):
            drawn[bool(alive[i])].append(f"M{x(step)} {y(parent)}L{x(step + 1)} {y(i)}")
    base = _HEIGHT + _ESS_HEIGHT
    points = " ".join(
        f"{x(step + 1)},{base - _ESS_HEIGHT * size / top:.1f}" for step, size in enumerate(sizes.tolist())
    )
    name = html.escape(title or "Genealogy")
    return (
        f'<!doctype html><meta charset="utf-8"><title>{name}</title><h1>{name}</h1>'
        f'<svg viewBox="0 0 {_WIDTH} {base + _MARGIN}" font-family="sans-serif" font-size="12" fill="none">'
        f'<path d="{"".join(drawn[False])}" stroke="#ccc"/><path d="{"".join(drawn[True])}" stroke="#000"/>'
        f'<polyline points="{points}" stroke="#06c" stroke-width="2"/>'
        f'<g fill="#000"><text x="{_MARGIN}" y="20">{count} particles, {len(posterior.genealogy)} steps; dark: '
        f'ancestors of the final ones</text><text x="{_MARGIN}" y="{_HEIGHT}">effective sample size, up to '
        f"{top:.1f}</text></g></svg>\n"
    )
