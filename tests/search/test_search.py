"""Sessions by symbols, best-first search and Monte Carlo trees, against listing all texts."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import sampling_models as toy
from tiny_model import REQUESTS, TINY

import maskwright as mw
from maskwright.compiling.symbols import Symbols
from maskwright.sampling import CallableModel, Everything, GrammarConstraint, Predicate, locally_constrained
from maskwright.search import Session, Strategy, best_first, mcts, search

TOKENS = [b"a", b"b", b"+", b"(", b")", b"+(", b"b)", b"", b""]
EOS = [7, 8]
VOCABULARY = mw.Vocabulary.from_bytes(TOKENS, eos_ids=EOS)
GRAMMAR = """
    start: term ("+" term)*
    term: NAME | "(" start ")"
    NAME: /[ab]+/
"""
NEXT = np.random.default_rng(6).dirichlet(np.full(9, 0.8), size=(12, 9))


def distribution(ids: Any) -> np.ndarray:
    """By the last token and the length, so that no two texts are equally likely."""
    return NEXT[len(ids) % 12, ids[-1] if len(ids) else 8]


def model() -> CallableModel:
    return CallableModel(lambda prefixes: np.log([distribution(ids) for ids in prefixes]), 9, EOS)


@pytest.fixture(scope="module")
def grammar() -> mw.CompiledGrammar:
    return mw.compile_lark(GRAMMAR, VOCABULARY)


def ranked(
    constraint: Any, max_tokens: int, weight: Any = lambda p, ids: p
) -> list[tuple[tuple[int, ...], float]]:
    found = toy.enumerate_target(
        max_tokens, weight, distribution, constraint.prefix, constraint.complete, EOS
    )
    return sorted(((ids, w) for ids, w in found.items() if w > 0), key=lambda pair: -pair[1])


# --- best first


@pytest.mark.parametrize("batch", [1, 3, 50])
@pytest.mark.parametrize("black_box", [False, True])
def test_the_likeliest_texts(grammar: mw.CompiledGrammar, batch: int, black_box: bool) -> None:
    constraint: Any = GrammarConstraint(grammar)
    if black_box:
        constraint = Predicate(constraint.prefix, constraint.complete)
    expected = ranked(constraint, 6)
    assert len(expected) > 100
    found = best_first(model(), constraint, n=40, max_tokens=6, batch=batch)
    assert found.proved
    assert [tuple(each.ids) for each in found.found] == [ids for ids, _ in expected[:40]]
    assert [each.log_probability for each in found.found] == pytest.approx(
        [math.log(p) for _, p in expected[:40]]
    )
    one = best_first(model(), constraint, max_tokens=6, batch=1)
    assert one.found == found.found[:1] and one.nodes < 30
    everything = best_first(model(), constraint, n=10**6, max_tokens=6, batch=batch)
    assert everything.proved and len(everything.found) == len(expected)


def test_rewards(grammar: mw.CompiledGrammar) -> None:
    """Names cost, and two texts in three are worth nothing: only complete ones are judged by that."""
    constraint = GrammarConstraint(grammar)

    def bound(ids: list[int]) -> float:
        return 3 * math.exp(-0.7 * sum(t in (0, 1, 6) for t in ids))

    def reward(ids: list[int]) -> float:
        return 0.0 if len(ids) % 3 else bound(ids)

    expected = ranked(constraint, 7, lambda p, ids: p * reward(list(ids)))
    found = best_first(model(), constraint, n=25, reward=reward, bound=bound, max_tokens=7)
    assert [tuple(each.ids) for each in found.found] == [ids for ids, _ in expected[:25]]
    assert [each.score for each in found.found] == pytest.approx([math.log(w) for _, w in expected[:25]])


def test_limits_and_bad_rewards(grammar: mw.CompiledGrammar) -> None:
    constraint = GrammarConstraint(grammar)
    few = best_first(model(), constraint, n=1000, max_tokens=8, max_nodes=10, batch=4)
    assert not few.proved and few.nodes == 10 and len(few.found) < 1000
    nothing = best_first(model(), Predicate(lambda ids: False), max_tokens=8)
    assert nothing.proved and nothing.found == []
    with pytest.raises(mw.ConstraintError, match=r"bound\(\[\]\) answered -0\.1; it must be a number from 0"):
        best_first(model(), constraint, bound=lambda ids: -0.1)
    with pytest.raises(mw.ConstraintError, match=r"reward\(.*it must be a number from 0"):
        best_first(model(), constraint, reward=lambda ids: math.nan)
    with pytest.raises(
        mw.MaskwrightError, match=r"bound\(.*\) is 0\.5, larger than 0\.25, the bound for \[\]"
    ):
        best_first(model(), constraint, bound=lambda ids: 0.5 if ids else 0.25)
    with pytest.raises(mw.MaskwrightError, match=r"reward\(.*\) is 2, larger than 1, the bound for"):
        best_first(model(), constraint, reward=lambda ids: 2.0)
    for bad in ({"n": 0}, {"max_tokens": 0}, {"max_nodes": 1.5}, {"batch": True}):
        with pytest.raises(mw.MaskwrightError, match="is a number, at least 1"):
            best_first(model(), constraint, **bad)  # type: ignore[arg-type]
    with pytest.raises(mw.MaskwrightError, match="LanguageModel"):
        best_first(None, constraint)  # type: ignore[arg-type]
    with pytest.raises(mw.VocabularyError):
        best_first(CallableModel(lambda prefixes: np.zeros((1, 3)), 3, 2), constraint)


def flat(probabilities: list[float]) -> CallableModel:
    """The same distribution behind every prefix; the last id is the end."""
    row = np.log(probabilities)
    return CallableModel(lambda prefixes: np.tile(row, (len(prefixes), 1)), len(row), len(row) - 1)


def test_what_needs_no_model_is_found_behind_the_last_node() -> None:
    """Proved only where no prefix that was left out may be better."""
    sure = best_first(flat([0.1, 0.9]), Everything(), max_nodes=1)
    assert [each.ids for each in sure.found] == [[]] and sure.proved and sure.nodes == 1
    perhaps = best_first(flat([0.9, 0.1]), Everything(), max_nodes=1)
    assert [each.ids for each in perhaps.found] == [[]] and not perhaps.proved
    both = best_first(flat([0.5, 0.3, 0.2]), Everything(), n=9, max_nodes=3, batch=1)
    assert [each.ids for each in both.found][:3] == [[], [0], [1]] and not both.proved
    best = search(
        flat([0.9, 0.1]),
        Strategy("best_first", max_tokens=100),
        {"grammar": Everything()},
        lambda ids: 0.5,
        budget=7,
    )
    assert best.calls == 7 and set(best.rewards) == {(0,) * n for n in range(7)}


def test_searches_keep_to_the_context(grammar: mw.CompiledGrammar) -> None:
    constraint = GrammarConstraint(grammar)
    small = model()
    small.room = 8
    message = "max_tokens is 9, but behind the prompt the model's context has room for 8"
    for call in (
        lambda: best_first(small, constraint, max_tokens=9),
        lambda: mcts(small, constraint, share_of_a, max_tokens=9),
        lambda: Session(small, grammar, max_tokens=9),
        lambda: search(small, Strategy(max_tokens=9), {"grammar": constraint}, lambda ids: 0.5, budget=5),
    ):
        with pytest.raises(mw.MaskwrightError, match=message):
            call()
    Session(small, grammar, max_tokens=8).forward()


# --- Monte Carlo trees


def share_of_a(ids: list[int]) -> float:
    return ids.count(0) / 6 if ids[0] == 3 else 0.0


@pytest.mark.parametrize("black_box", [False, True])
def test_enough_simulations_see_everything(grammar: mw.CompiledGrammar, black_box: bool) -> None:
    constraint: Any = GrammarConstraint(grammar)
    if black_box:
        constraint = Predicate(constraint.prefix, constraint.complete)
    expected = ranked(constraint, 5)
    found = mcts(model(), constraint, share_of_a, simulations=100_000, max_tokens=5, seed=1)
    assert found.proved
    assert {tuple(each.ids) for each in found.found} == {ids for ids, _ in expected}
    best = max(share_of_a(list(ids)) for ids, _ in expected)
    assert found.found[0].score == best > 0
    for each in found.found:
        assert each.score == share_of_a(each.ids)
        assert each.log_probability == pytest.approx(math.log(dict(expected)[tuple(each.ids)]))


def test_it_finds_what_sampling_does_not(grammar: mw.CompiledGrammar) -> None:
    """Rewards that grow along unlikely tokens lead further than as many samples do."""
    constraint = GrammarConstraint(grammar)
    goal = [3, 0, 5, 1, 1, 4, 4]  # (a+(bb))

    def reward(ids: list[int]) -> float:
        common = len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], zip(ids, goal, strict=False))))
        return common / len(goal)

    found = mcts(model(), constraint, reward, simulations=600, exploration=1.0, max_tokens=9, seed=3)
    assert not found.proved and found.found == sorted(found.found, key=lambda each: -each.score)
    sampled = locally_constrained(model(), constraint, 600, 9, seed=3)
    assert found.found[0].score >= 5 / 7 > max(map(reward, sampled.sequences))
    assert found == mcts(model(), constraint, reward, simulations=600, exploration=1.0, max_tokens=9, seed=3)


def test_bad_input_of_trees(grammar: mw.CompiledGrammar) -> None:
    constraint = GrammarConstraint(grammar)
    for reward in (
        lambda ids: 1.5,
        lambda ids: math.nan,
        lambda ids: -0.1,
        lambda ids: "x",
        lambda ids: None,
    ):
        with pytest.raises(mw.ConstraintError, match="it must be a number from 0 to 1"):
            mcts(model(), constraint, reward, max_tokens=6, seed=0)  # type: ignore[arg-type]
    with pytest.raises(mw.MaskwrightError, match="simulations"):
        mcts(model(), constraint, share_of_a, simulations=0)
    with pytest.raises(mw.MaskwrightError, match="exploration"):
        mcts(model(), constraint, share_of_a, exploration=math.nan)
    wrong: Any
    for wrong in ("a", -1, 0.5, True):
        with pytest.raises(mw.MaskwrightError, match="seed: expected an integer of at least 0"):
            mcts(model(), constraint, share_of_a, seed=wrong)
        with pytest.raises(mw.MaskwrightError, match="seed: expected an integer of at least 0"):
            Session(model(), grammar, seed=wrong)
    for wrong in ("a", None, -1, math.inf):
        with pytest.raises(mw.MaskwrightError, match="exploration"):
            mcts(model(), constraint, share_of_a, exploration=wrong)
        with pytest.raises(mw.MaskwrightError, match="penalty"):
            Session(model(), grammar, penalty=wrong)
    nothing = mcts(model(), Predicate(lambda ids: False), share_of_a)
    assert nothing.proved and nothing.found == []
    for find in (mcts, best_first):
        with pytest.raises(
            mw.LimitError, match="max_tokens is 1, but the shortest text takes 2 tokens, EOS included"
        ):
            find(model(), constraint, reward=share_of_a, max_tokens=1)


# --- sessions


def test_forward_and_view(grammar: mw.CompiledGrammar) -> None:
    for seed in range(30):
        session = Session(model(), grammar, symbols=["NAME", "term"], max_tokens=40, seed=seed)
        written = ""
        for count in itertools.count(1):
            written += session.forward("NAME")
            assert session.text == written
            if session.finished or len(session.ids) == 40:
                break
            # Just as many as were asked for: one token cannot end two names here.
            assert len(session.view("NAME")) == count
        data = session.text.encode()
        reading = Symbols(grammar).start.read(data)
        found = reading.occurrences_at_end() if session.finished else reading.occurrences()
        assert found is not None
        for symbol in ("NAME", "term"):
            spans = sorted((each.start, each.end) for each in found if each.symbol == symbol)
            assert session.view(symbol) == [data[a:b].decode() for a, b in spans]
        scores = [math.log(distribution(session.ids[:i])[t]) for i, t in enumerate(session.ids)]
        if session.finished:
            scores.append(math.log(distribution(session.ids)[EOS].sum()))
        assert session.log_probability == pytest.approx(sum(scores))


def test_backward_leaves_what_was_there_before(grammar: mw.CompiledGrammar) -> None:
    """After going back, everything is what it is in a session that was never further."""
    rng = np.random.default_rng(2)
    for seed in range(20):
        session = Session(model(), grammar, max_tokens=30, seed=seed)
        session.forward("token", int(rng.integers(4, 25)))
        names = session.view("NAME")
        if not names:
            continue
        n = int(rng.integers(1, len(names) + 1))
        before, ids = session.text, list(session.ids)
        reading = Symbols(grammar).start.read(before.encode())
        found = reading.occurrences_at_end() if session.finished else reading.occurrences()
        start = sorted(each.start for each in found or () if each.symbol == "NAME")[-n]
        removed = session.backward("NAME", n)
        assert before == session.text + removed
        assert ids[: len(session.ids)] == session.ids and not session.finished
        # No token that could have stayed was taken back.
        kept = len(session.text.encode())
        assert kept <= start < kept + len(TOKENS[ids[len(session.ids)]])
        again = Session(model(), grammar, max_tokens=30)
        again.ids, again._matcher = list(session.ids), GrammarConstraint(grammar).start()
        assert again._matcher.accept_tokens(again.ids) == len(again.ids)
        assert again._matcher.state_id == session._matcher.state_id
        assert (
            session._readings[-1].occurrences()
            == Symbols(grammar).start.read(session.text.encode()).occurrences()
        )
        session.forward("token", 1)
        assert session.finished or len(session.ids) == len(again.ids) + 1


def goes_back_right(kind: type[Session], grammar: mw.CompiledGrammar) -> bool:
    """Whether what is written behind a text that was taken back is what model and grammar say of the text that is left."""
    for seed in range(10):
        session = kind(model(), grammar, max_tokens=30, seed=seed)
        session.forward("token", 6)
        session.backward("token", min(3, len(session.ids)))
        try:
            session.forward()
        except mw.MaskwrightError:
            return False
        scores = [math.log(distribution(session.ids[:i])[t]) for i, t in enumerate(session.ids)]
        expected = sum(scores) + math.log(distribution(session.ids)[EOS].sum())
        is_text = GrammarConstraint(grammar).complete(session.ids)
        if not is_text or session.log_probability != pytest.approx(expected):
            return False
    return True


def test_sessions_that_forget_to_rewind_are_caught(grammar: mw.CompiledGrammar) -> None:
    class StaleModel(Session):
        def _behind(self) -> Any:
            self._read = len(self.ids)
            return super()._behind()

    class StaleMatcher(Session):
        def _cut(self, length: int) -> None:
            self._keep(length, self._matcher)

    class StaleScores(Session):
        def _keep(self, length: int, matcher: Any) -> None:
            scores = list(self._scores)
            super()._keep(length, matcher)
            self._scores = scores

    assert goes_back_right(Session, grammar)
    for wrong in (StaleModel, StaleMatcher, StaleScores):
        assert not goes_back_right(wrong, grammar), wrong


def test_tokens_are_symbols(grammar: mw.CompiledGrammar) -> None:
    session = Session(model(), grammar, max_tokens=12, seed=4)
    session.forward("token", 5)
    assert len(session.ids) == 5 and session.view("token") == [TOKENS[t].decode() for t in session.ids]
    kept = session.ids[:3]
    session.backward("token", 2)
    assert session.ids == kept
    session.forward()
    assert session.finished or len(session._scores) == 12


def test_going_back_from_the_end(grammar: mw.CompiledGrammar) -> None:
    for seed in range(20):
        session = Session(model(), grammar, max_tokens=60, seed=seed)
        session.forward()
        if session.finished:
            text, names = session.text, session.view("NAME")
            # At the end the last name is certain as well.
            assert text.endswith((names[-1], names[-1] + ")" * (len(text) - len(text.rstrip(")")))))
            session.backward("NAME")
            assert not session.finished and len(session.text) < len(text)
            session.forward()


def test_a_penalty_makes_other_tries_differ(grammar: mw.CompiledGrammar) -> None:
    def tries(penalty: float) -> list[str]:
        session = Session(model(), grammar, max_tokens=50, greedy=True, penalty=penalty)
        found = []
        for _ in range(4):
            found.append(session.forward("NAME"))
            session.backward("token", len(session.ids))
        return found

    assert len(set(tries(0.0))) == 1
    assert len(set(tries(50.0))) > 2


def test_repairing_names(grammar: mw.CompiledGrammar) -> None:
    """The loop of IterGen: every name that is wrong is taken back and written again."""
    good, backs, longest = {"a", "ab", "ba"}, 0, 0
    for seed in range(10):
        session = Session(model(), grammar, symbols=["NAME"], max_tokens=60, penalty=1.0, seed=seed)
        while not session.finished and len(session.ids) < 40:
            session.forward("NAME")
            if session.view("NAME")[-1] not in good:
                session.backward("NAME")
                backs += 1
            assert backs < 500
            assert set(session.view("NAME")) <= good
        longest = max(longest, len(session.view("NAME")))
    assert backs > 5 and longest > 2


def test_sessions_end_in_time_with_a_complete_text(grammar: mw.CompiledGrammar) -> None:
    """Also where a name is never right: going back has a limit."""
    for max_tokens, seed in itertools.product((4, 5, 7, 12), range(10)):
        session = Session(model(), grammar, max_tokens=max_tokens, seed=seed)
        while not session.finished:
            session.forward("NAME")
        assert GrammarConstraint(grammar).complete(session.ids) and len(session._scores) <= max_tokens
        assert session.forward("NAME") == ""
    session = Session(model(), grammar, max_tokens=12, max_retries=5, seed=1)
    for _ in range(5):
        session.forward("NAME")
        session.backward("NAME")
    session.forward("NAME")
    text = session.text
    with pytest.raises(mw.LimitError, match="max_retries") as caught:
        session.backward("NAME")
    assert caught.value.limit == "max_retries" and session.retries == 5 and session.text == text
    shortest = len(grammar.matcher().shortest_completion()) + 1
    with pytest.raises(mw.LimitError, match=f"takes {shortest} tokens"):
        Session(model(), grammar, max_tokens=shortest - 1)
    Session(model(), grammar, max_tokens=shortest).forward()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_in_the_middle_leaves_the_text_as_it_was(
    grammar: mw.CompiledGrammar, error: type[BaseException]
) -> None:
    failing: list[int] = []

    def function(prefixes: list[list[int]]) -> np.ndarray:
        if len(prefixes[0]) in failing:
            raise error
        return np.log([distribution(ids) for ids in prefixes])

    session = Session(CallableModel(function, 9, EOS), grammar, max_tokens=60, penalty=1.0, seed=12)
    session.forward("token", 2)
    session.backward("token")
    session.forward("token", 2)
    text, ids, score = session.text, list(session.ids), session.log_probability
    counts = [child.taken_back for node in session._path for child in node.children.values()]
    failing.append(7)
    with pytest.raises(error):
        session.forward("token", 10)
    assert (session.text, session.ids, session.log_probability) == (text, ids, score)
    assert not session.finished and session.retries == 1
    assert sum(child.taken_back for node in session._path for child in node.children.values()) == sum(counts)
    failing.clear()
    session.forward()
    assert session.finished and GrammarConstraint(grammar).complete(session.ids)
    scores = [math.log(distribution(session.ids[:i])[t]) for i, t in enumerate(session.ids)]
    assert session.log_probability == pytest.approx(
        sum(scores) + math.log(distribution(session.ids)[EOS].sum())
    )


def test_an_occurrence_that_is_not_there(grammar: mw.CompiledGrammar) -> None:
    session = Session(model(), grammar, seed=1)
    with pytest.raises(mw.MaskwrightError, match=r"view\('NAME'\)\[-1\]: 0 occurrences"):
        session.view("NAME")[-1]
    session.forward("NAME")
    assert session.view("NAME")[-1] == session.view("NAME")[0] and session.view("NAME")[:1] == session.view(
        "NAME"
    )


def test_bad_input_of_sessions(grammar: mw.CompiledGrammar) -> None:
    with pytest.raises(mw.GrammarError, match="no symbol 'nosuch'"):
        Session(model(), grammar, symbols=["nosuch"])
    with pytest.raises(mw.VocabularyError):
        Session(CallableModel(lambda prefixes: np.zeros((1, 3)), 3, 2), grammar)
    for bad in (
        {"max_tokens": 0},
        {"penalty": -1.0},
        {"penalty": math.nan},
        {"greedy": "x"},
        {"greedy": None},
    ):
        with pytest.raises(mw.MaskwrightError, match=next(iter(bad))):
            Session(model(), grammar, **bad)  # type: ignore[arg-type]
    session = Session(model(), grammar, symbols=["NAME"], seed=1)
    session.forward("NAME", 2)
    text = session.text
    for call in (
        lambda: session.forward("term"),
        lambda: session.backward("term"),
        lambda: session.view("term"),
        lambda: session.forward("NAME", 0),
        lambda: session.backward("NAME", 100),
        lambda: session.backward("NAME", 1.5),  # type: ignore[arg-type]
    ):
        with pytest.raises(mw.MaskwrightError):
            call()
        assert session.text == text


def test_hugging_face_models_go_back_right() -> None:
    """Behind a text that was partly taken back, the model answers what it answers for the text anew."""
    pytest.importorskip("torch")
    from maskwright.demo import format_prompt
    from maskwright.sampling import HuggingFaceModel

    case = REQUESTS["person"]
    backend = HuggingFaceModel(TINY, prompt=format_prompt(case["request"], case["schema"]))
    compiled = mw.compile_json_schema(case["schema"], backend.vocabulary)
    names = [name for name in Symbols(compiled).names if name.startswith("/properties/")]
    session = Session(backend, compiled, symbols=names, max_tokens=200, seed=0)
    session.forward(names[0])
    assert len(session.view(names[0])) == 1
    session.forward("token", 3)
    session.backward(names[0])
    assert session.view(names[0]) == []
    read: list[int] = []
    handle = backend.model.register_forward_pre_hook(
        lambda module, args, given: read.append(given["input_ids"].shape[1]), with_kwargs=True
    )
    before = len(session.ids)
    session.forward("token", 1)
    handle.remove()
    # The last token of what was kept, and the new one.
    assert before > 1 and read == [1, 1]
    state = backend.state([session.ids])
    assert session._state is not None
    assert np.allclose(session._state.logprobs, state.logprobs, atol=1e-4)
    session.forward()
    assert session.finished and GrammarConstraint(compiled).complete(session.ids)
