"""Pictures of a run: who descends from whom, and the effective sample size; a page, or with matplotlib a PNG."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from maskwright.errors import MaskwrightError
from maskwright.pages.genealogy import genealogy, survivors
from maskwright.sampling.logspace import Floats

if TYPE_CHECKING:
    from maskwright.sampling.posterior import Posterior


def plot_genealogy(
    posterior: Posterior, path: Path, title: str = "", decode: Callable[[list[int]], Any] | None = None
) -> None:
    """Write the genealogy and the history of effective sample sizes to ``path`` (``.png`` or ``.html``).

    Lines lead from every particle to its ancestor; dark ones belong to particles that were not replaced
    by others until the end.
    """
    if path.suffix == ".html":
        path.write_text(genealogy(posterior, decode, title or "Genealogy"), encoding="utf-8")
    elif path.suffix == ".png":
        _png(posterior, path, title)
    else:
        raise MaskwrightError(f"plots are .png or .html, not {path.suffix!r}")


def _sizes(posterior: Posterior) -> Floats:
    return np.array([np.mean(size) for size in posterior.ess_history])


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
                zip(posterior.genealogy, survivors(posterior), strict=True)
            )
            for i in np.flatnonzero(np.array(alive) == is_alive)
        ]
        upper.add_collection(LineCollection(lines, colors=shade, linewidths=0.7))
    upper.set(xlim=(0, max(1, len(posterior.genealogy))), ylim=(-1, count), ylabel="particle", title=title)
    sizes = _sizes(posterior)
    lower.plot(np.arange(1, len(sizes) + 1), sizes)
    lower.set(xlabel="resampling step", ylabel="effective sample size", ylim=(0, None))
    figure.savefig(path, dpi=120)
