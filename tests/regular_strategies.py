"""Random regular expressions: as trees, and as patterns."""

from __future__ import annotations

from hypothesis import strategies as st

from maskwright.regular.expressions import EPSILON, NOTHING, Lit, Regular, alt, cat, char, chars, repeat

# Above what is unrolled because it is small, so that loops are counted.
LARGE_COUNTS = st.sampled_from([(0, 9), (2, 10), (9, None), (0, None), (1, 12)])


def trees(counts: st.SearchStrategy[tuple[int, int | None]]) -> st.SearchStrategy[tuple[Regular, str]]:
    """Trees over a and b, each with the same pattern for ``re``."""

    def extend(inner: st.SearchStrategy[tuple[Regular, str]]) -> st.SearchStrategy[tuple[Regular, str]]:
        def concatenate(parts: list[tuple[Regular, str]]) -> tuple[Regular, str]:
            return cat(*(node for node, _ in parts)), "".join(f"(?:{p})" for _, p in parts)

        def choose(parts: list[tuple[Regular, str]]) -> tuple[Regular, str]:
            return alt(*(node for node, _ in parts)), "|".join(f"(?:{p})" for _, p in parts)

        def loop(item: tuple[Regular, str], count: tuple[int, int | None]) -> tuple[Regular, str]:
            low, high = count
            bounds = f"{{{low},{'' if high is None else high}}}"
            return repeat(item[0], low, high), f"(?:{item[1]}){bounds}"

        lists = st.lists(inner, min_size=1, max_size=3)
        return st.one_of(lists.map(concatenate), lists.map(choose), st.builds(loop, inner, counts))

    leaves = st.sampled_from(
        [
            (char("a"), "a"),
            (char("b"), "b"),
            (chars((97, 98)), "[ab]"),
            (EPSILON, "(?:)"),
            (NOTHING, "(?!)"),
            (Lit("a\ud800"), "(?!)"),
        ]
    )
    return st.recursive(leaves, extend, max_leaves=8)


def quantified(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    loops = st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "+?", "??"])
    return st.builds("(?:{}){}".format, inner, loops)


def patterns(anchors: list[str], looks: list[str]) -> st.SearchStrategy[str]:
    leaves = st.sampled_from(["a", "b", "[ab]", "[^a]", ".", "\\w", "\\W", "\\n", "", *anchors])

    def extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        ways = [
            st.lists(inner, min_size=2, max_size=4).map("".join),
            st.builds("(?:{}|{})".format, inner, inner),
            st.builds("({})".format, inner),
            quantified(inner),
        ]
        if looks:
            ways.append(st.builds("({}{})".format, st.sampled_from(looks), inner))
        return st.one_of(ways)

    return st.recursive(leaves, extend, max_leaves=7)
