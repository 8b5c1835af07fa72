"""The genealogy of particles: who descends from whom, where they were resampled, and what became of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from maskwright.base.html import facts, table
from maskwright.pages.page import page

if TYPE_CHECKING:
    from maskwright.sampling.posterior import Posterior

_WIDTH, _HEIGHT, _SIZES, _MARGIN, _WEIGHTS = 900, 420, 110, 30, 90

_CHOOSE = """<div class="two">
<div><label for="particle">Particle <output id="which" for="particle"></output></label><input id="particle" type="range" min="0" value="0"></div>
<div><label for="step">Step <output id="when" for="step"></output></label><input id="step" type="range" min="0" value="0"></div>
</div>
<p class="quiet">Sliders move with the arrow keys; a click into the picture chooses as well. The coloured line leads from the chosen particle back to the first step.</p>
"""
_PANEL = """<section id="panel" aria-live="polite">
<dl class="facts">
<div><dt>Weight in the end</dt><dd data-figure="weight"></dd></div>
<div><dt>Ended</dt><dd data-figure="ended"></dd></div>
<div><dt>At this step it was particle</dt><dd data-figure="ancestor"></dd></div>
<div><dt>Effective sample size before this step</dt><dd data-figure="size"></dd></div>
<div><dt>At this step, particles were</dt><dd data-figure="resampled"></dd></div>
<div><dt>Particles of this step with descendants</dt><dd data-figure="alive"></dd></div>
</dl>
<pre id="text"></pre>
</section>
"""


def genealogy(
    posterior: Posterior, decode: Callable[[list[int]], Any] | None = None, title: str = "Genealogy"
) -> str:
    """The page of a ``Posterior``: HTML, one file.  ``decode``: of token ids, as ``model.decode``; without it, ids are shown."""
    weights, steps = posterior.weights.tolist(), len(posterior.genealogy)
    alive = survivors(posterior)
    lines = [each.tolist() for each in posterior.genealogy]
    resampled = [line != list(range(len(line))) for line in lines]
    sizes = _sizes(posterior)
    texts = [str(decode(list(ids)) if decode is not None else ids) for ids in posterior.sequences]
    first = len(set(_line_back(lines, range(len(weights))))) if weights else 0
    body = (
        facts(
            [
                (
                    "Particles",
                    f"{len(weights)}" + (f" in {posterior.islands} islands" if posterior.islands > 1 else ""),
                ),
                ("Steps", steps),
                ("Resampled at", sum(resampled)),
                ("First particles with descendants", first),
                ("Effective sample size in the end", f"{posterior.ess:.1f}"),
                ("Log evidence", f"{posterior.log_evidence:.3f}"),
                ("Died", int((~posterior.is_complete).sum())),
            ]
        )
        + _CHOOSE
        + f'<div class="scrolls picture">{picture(posterior)}</div>\n'
        + '<p class="quiet">Strong lines have descendants in the end. Dots on the right are final weights. Below: the effective sample size before each step; bars '
        "mark steps at which particles were resampled.</p>\n"
        + _PANEL
        + f"<details><summary>All particles as a table</summary>\n{_particles(posterior, weights, texts, lines)}</details>\n"
        + f"<details><summary>All steps as a table</summary>\n{_steps(sizes, resampled, alive)}</details>\n"
    )
    data = {
        "ancestors": lines,
        "sizes": sizes,
        "weights": weights,
        "texts": texts,
        "ended": posterior.is_complete.tolist(),
        "alive": [sum(each) for each in alive],
        "frame": {
            "left": _MARGIN,
            "right": _WIDTH - _MARGIN - _WEIGHTS,
            "top": _MARGIN,
            "bottom": _HEIGHT - _MARGIN,
        },
    }
    return page(title, body, scripts=["genealogy.js"], data=data)


def survivors(posterior: Posterior) -> list[list[bool]]:
    """For each resampling, which of the particles behind it have descendants at the end."""
    alive = [True] * len(posterior.log_weights)
    found = []
    for ancestors in reversed(posterior.genealogy):
        found.append(alive)
        before = [False] * len(alive)
        for particle, ancestor in enumerate(ancestors.tolist()):
            before[ancestor] |= alive[particle]
        alive = before
    return found[::-1]


def picture(posterior: Posterior) -> str:
    """Genealogy, final weights and effective sample sizes, as SVG in the colour of the text around it."""
    count, steps = len(posterior.log_weights), max(1, len(posterior.genealogy))
    sizes, right = _sizes(posterior), _WIDTH - _MARGIN - _WEIGHTS
    largest = max([1.0, *sizes])

    def x(step: float) -> float:
        return round(_MARGIN + (right - _MARGIN) * step / steps, 1)

    def y(particle: float) -> float:
        return round(_MARGIN + (_HEIGHT - 2 * _MARGIN) * (particle + 0.5) / max(1, count), 1)

    drawn: dict[bool, list[str]] = {False: [], True: []}
    bars = []
    base = _HEIGHT + _SIZES
    for step, (ancestors, alive) in enumerate(
        zip((each.tolist() for each in posterior.genealogy), survivors(posterior), strict=True)
    ):
        if ancestors != list(range(count)):
            bars.append(f'<rect x="{x(step + 1) - 1}" y="{_HEIGHT}" width="2" height="{_SIZES}"/>')
        for i, parent in enumerate(ancestors):
            drawn[alive[i]].append(f"M{x(step)} {y(parent)}L{x(step + 1)} {y(i)}")
    dots = [
        f'<circle cx="{right + _WEIGHTS / 2}" cy="{y(i)}" r="{28 * weight**0.5:.1f}"/>'
        for i, weight in enumerate(posterior.weights.tolist())
        if weight > 0
    ]
    points = " ".join(
        f"{x(step + 1)},{base - _SIZES * size / largest:.1f}" for step, size in enumerate(sizes)
    )
    said = f"genealogy of {count} particles over {len(posterior.genealogy)} steps"
    return (
        f'<svg class="genealogy" viewBox="0 0 {_WIDTH} {base + 10}" role="img" aria-label="{said}" fill="none" stroke="currentColor">'
        f'<path d="{"".join(drawn[False])}" stroke-opacity="0.2"/><path d="{"".join(drawn[True])}" stroke-opacity="0.8"/>'
        f'<g fill="currentColor" stroke="none" fill-opacity="0.6">{"".join(dots)}</g>'
        f'<g fill="currentColor" stroke="none" fill-opacity="0.2">{"".join(bars)}</g>'
        f'<polyline points="{points}" stroke-width="2"/></svg>\n'
    )


def _sizes(posterior: Posterior) -> list[float]:
    """Effective sample sizes, of islands their mean."""
    return [
        float(sum(size) / len(size)) if hasattr(size, "__len__") else float(size)
        for size in posterior.ess_history
    ]


def _line_back(lines: Sequence[Sequence[int]], particles: Sequence[int]) -> list[int]:
    """Who the particles descend from, before the first step."""
    found = list(particles)
    for line in reversed(lines):
        found = [line[i] for i in found]
    return found


def _particles(posterior: Posterior, weights: list[float], texts: list[str], lines: list[list[int]]) -> str:
    firsts = _line_back(lines, range(len(weights)))
    ended = posterior.is_complete.tolist()
    order = sorted(range(len(weights)), key=lambda i: -weights[i])
    rows = [
        (
            i,
            f"{weights[i]:.4f}",
            f"{posterior.log_weights[i]:.3f}",
            "ended" if ended[i] else "died",
            firsts[i],
            texts[i],
        )
        for i in order
    ]
    heads = ("particle", "weight", "log weight", "", "descends from", "text")
    return table("All particles, the heaviest first", heads, rows, numbers=(0, 1, 2, 4))


def _steps(sizes: list[float], resampled: list[bool], alive: list[list[bool]]) -> str:
    rows = [
        (i + 1, f"{size:.2f}", "resampled" if resampled[i] else "", sum(alive[i]))
        for i, size in enumerate(sizes)
    ]
    heads = ("step", "effective sample size", "", "with descendants")
    return table("All steps", heads, rows, numbers=(0, 1, 3))
