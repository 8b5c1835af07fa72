"""Plots of ``maskbench.py``, ``scaling.py`` and ``soak.py``; needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot

    return matplotlib.pyplot


def plot_tails(panels: Mapping[str, Mapping[str, npt.ArrayLike]], title: str, path: Path) -> None:
    """For every panel and engine, the share of values above each time; times come in microseconds."""
    plt = _pyplot()
    figure, axes = plt.subplots(
        1, len(panels), figsize=(6 * len(panels), 4.5), squeeze=False, layout="constrained"
    )
    for axis, (name, series) in zip(axes[0], panels.items(), strict=True):
        for engine, values in series.items():
            times = np.sort(np.asarray(values))
            if not len(times):
                continue
            # The slowest value is reached by one in n, so that the curve ends there and not at zero.
            shares = np.arange(len(times), 0, -1) / len(times)
            axis.step(times, shares, where="post", label=f"{engine} ({len(times)})")
        axis.set(
            xscale="log", yscale="log", title=name, xlabel="µs", ylabel="share that takes this or longer"
        )
        axis.grid(True, which="major", alpha=0.3)
        axis.legend()
    figure.suptitle(title)
    _save(plt, figure, path)


def plot_scaling(families: Mapping[str, Sequence[Mapping[str, Any]]], title: str, path: Path) -> None:
    """For every family, the figures against the size."""
    plt = _pyplot()
    columns = min(3, len(families))
    rows = -(-len(families) // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(5.5 * columns, 4 * rows), squeeze=False, layout="constrained"
    )
    for axis in axes.flat[len(families) :]:
        axis.set_axis_off()
    labels = dict.fromkeys(label for points in families.values() for label in _lines(points))
    colours = {label: f"C{number}" for number, label in enumerate(labels)}
    for axis, (name, points) in zip(axes.flat, families.items(), strict=False):
        sizes = [point["size"] for point in points]
        for label, values in _lines(points).items():
            axis.plot(sizes, values, marker="o", markersize=3, color=colours[label], label=label)
        axis.set(xscale="log", yscale="log", title=name, xlabel="size", ylabel="µs")
        axis.grid(True, which="major", alpha=0.3)
    handles = [plt.Line2D([], [], color=colour, marker="o", markersize=3) for colour in colours.values()]
    figure.legend(handles, list(colours), loc="outside lower center", ncols=len(colours))
    figure.suptitle(title)
    _save(plt, figure, path)


def _lines(points: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for name in ("compile", "first mask", "completion"):
        if all(name in point for point in points):
            found[name] = [point[name] for point in points]
    for name in ("mask+accept", "again"):
        for share in ("p50", "p99", "max"):
            if all(name in point for point in points) and (name, share) != ("again", "max"):
                found[f"{name} {share}"] = [point[name][share] for point in points]
    return found


def plot_soak(runs: Sequence[Mapping[str, Any]], title: str, path: Path) -> None:
    """For every held grammar: memory, and time a token, against the tokens that went through it."""
    plt = _pyplot()
    kinds = list(dict.fromkeys(run["kind"] for run in runs))
    wide = 5
    blocks = -(-len(kinds) // wide)
    figure, axes = plt.subplots(
        2 * blocks, wide, figsize=(3.2 * wide, 5 * blocks), squeeze=False, layout="constrained"
    )
    for axis in axes.flat:
        axis.set_visible(False)
    for i, kind in enumerate(kinds):
        pair = axes[2 * (i // wide) : 2 * (i // wide) + 2, i % wide]
        for run in runs:
            if run["kind"] != kind:
                continue
            tokens = [point["tokens"] for point in run["points"]]
            label = "one text" if run["one_text"] else "requests"
            for axis, name in zip(pair, ("MB", "us_per_token"), strict=True):
                axis.plot(tokens, [point[name] for point in run["points"]], label=label, linewidth=1)
        pair[0].set(title=kind, ylabel="MB more than at first" if i % wide == 0 else None)
        pair[1].set(xlabel="tokens", ylabel="µs a token" if i % wide == 0 else None)
        pair[0].set_ylim(bottom=0, top=max(150, pair[0].get_ylim()[1]))
        pair[1].set_ylim(bottom=0)
        for axis in pair:
            axis.set_visible(True)
            axis.grid(True, alpha=0.3)
    axes[0, 0].legend()
    figure.suptitle(title)
    _save(plt, figure, path)


def _save(plt: Any, figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)
