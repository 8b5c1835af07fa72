"""The page of one generation: each token with what was allowed, what the model wanted, and what the mask removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from maskwright.base.html import escape, facts, percent, table
from maskwright.pages.page import page

if TYPE_CHECKING:
    from maskwright.generation.trace import Trace, TracedToken

_PANEL = """<section id="panel" aria-live="polite">
<h2></h2>
<div class="two">
<dl class="facts">
<div><dt>Tokens allowed</dt><dd data-figure="allowed"></dd></div>
<div><dt>Probability removed</dt><dd data-figure="removed"></dd></div>
<div><dt>Entropy before</dt><dd data-figure="before"></dd></div>
<div><dt>Entropy after</dt><dd data-figure="after"></dd></div>
<div><dt>The model's probability of this token</dt><dd data-figure="chance"></dd></div>
<div><dt>Its rank</dt><dd data-figure="rank"></dd></div>
<div><dt>Forced</dt><dd data-figure="forced"></dd></div>
<div><dt>Open part</dt><dd data-figure="open"></dd></div>
<div><dt>Expected</dt><dd data-figure="expected"></dd></div>
</dl>
<table>
<caption>What the model wanted</caption>
<thead><tr><th scope="col">token</th><th scope="col" class="number">before the mask</th><th scope="col" class="number">after</th></tr></thead>
<tbody></tbody>
</table>
</div>
</section>
"""


def explain(trace: Trace) -> str:
    """The page: HTML, one file."""
    usage = trace.generation.usage
    tokens = trace.tokens
    figures = [
        ("Tokens", usage.generated_tokens),
        ("Written because the grammar left no choice", usage.forced_tokens),
        ("Forward passes", usage.model_calls),
        ("The model alone would have left the language", percent(trace.removed)),
        (
            "Bits of choice before and after",
            f"{_sum(tokens, 'entropy_before')} → {_sum(tokens, 'entropy_after')}",
        ),
    ]
    if trace.generation.finish_reason == "budget":
        figures.append(("Ended by", "the token budget: the shortest completion was written"))
    body = (
        facts(figures)
        + f"<details><summary>Prompt</summary><pre>{escape(trace.prompt)}</pre></details>\n"
        + "<h2>The output</h2>\n"
        + '<p class="quiet">The redder a token, the more probability the mask removed before it. A dotted line: the grammar left no choice. '
        "Select a token, or move with the arrow keys.</p>\n"
        + f'<div class="tokens" role="group" aria-label="tokens of the output">{_tokens(tokens)}</div>\n'
        + _chart(tokens)
        + _PANEL
        + f"<details><summary>All places as a table</summary>\n{_all(tokens)}</details>\n"
    )
    data = [asdict(token) for token in tokens]
    return page("What the mask did", body, scripts=["explain.js"], data=data)


def _sum(tokens: Sequence[TracedToken], name: str) -> str:
    return f"{sum(getattr(token, name) for token in tokens):.1f}"


def _tokens(tokens: Sequence[TracedToken]) -> str:
    made = []
    for i, token in enumerate(tokens):
        kinds = "token" + (" forced" if token.forced else "") + (" end" if _is_end(tokens, i) else "")
        # Line breaks are shown, and break the line; an indentation belongs to the next one.
        text = escape(token.text.replace("\n", "⏎"))
        first, last = (
            ("<br>", "") if token.text.startswith("\n") else ("", "<br>" if "\n" in token.text else "")
        )
        label = escape(
            f"{token.text!r}, {percent(token.removed)} removed" + (", forced" if token.forced else "")
        )
        made.append(
            f'{first}<button type="button" class="{kinds}" style="--share:{0.6 * token.removed:.3f}" aria-pressed="false" '
            f'aria-label="{label}" tabindex="{-1 if i else 0}">{text}</button>{last}'
        )
    return "".join(made)


def _is_end(tokens: Sequence[TracedToken], at: int) -> bool:
    return at == len(tokens) - 1 and tokens[at].text == "end of the output"


def _chart(tokens: Sequence[TracedToken]) -> str:
    """Bars: the probability removed at each place above, the entropy after the mask below."""
    most = max((token.entropy_after for token in tokens), default=0) or 1
    width = max(len(tokens), 1)
    bars = "".join(
        f'<rect class="removed" x="{i}" width="0.8" y="{40 - 40 * t.removed:.1f}" height="{40 * t.removed:.1f}"/>'
        f'<rect class="entropy" x="{i}" width="0.8" y="42" height="{30 * t.entropy_after / most:.1f}"/>'
        for i, t in enumerate(tokens)
    )
    return (
        f'<svg class="chart" viewBox="0 0 {width} 74" preserveAspectRatio="none" aria-hidden="true">{bars}</svg>\n'
        '<p class="quiet">Above: probability removed at each place. Below: bits of choice that the mask left. The table at the end has both.</p>\n'
    )


def _all(tokens: Sequence[TracedToken]) -> str:
    rows = [
        (
            i + 1,
            repr(token.text),
            f"{token.allowed:,}",
            repr(token.wanted[0].text),
            percent(token.removed),
            f"{token.entropy_before:.2f}",
            f"{token.entropy_after:.2f}",
            "forced" if token.forced else "",
            " in ".join(token.open),
        )
        for i, token in enumerate(tokens)
    ]
    heads = (
        "place",
        "token",
        "allowed",
        "the model's first",
        "removed",
        "bits before",
        "bits after",
        "forced",
        "open part",
    )
    return table("All places", heads, rows, numbers=(0, 2, 4, 5, 6))
