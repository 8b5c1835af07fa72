"""Clauses of object groups that are no choice: unit propagation.

Conditions and exclusive alternatives leave many clauses, of which most hold in one branch for one
reason: a member that is required there has another value (a discriminator).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from maskwright.frontends.json_schema.algebra.groups import (
    Absent,
    Clause,
    Conjunction,
    Either,
    Keys,
    Literal,
    Neither,
    ObjectGroup,
    Rule,
    conjoin,
    nothing,
)
from maskwright.frontends.json_schema.algebra.keys import KeyMap, is_false
from maskwright.frontends.json_schema.algebra.typed import negation
from maskwright.frontends.json_schema.read.nodes import Node

if TYPE_CHECKING:
    from maskwright.frontends.json_schema.algebra.normalize import Normalizer
    from maskwright.frontends.json_schema.algebra.trivially_empty import TriviallyEmpty


def propagate_units(group: ObjectGroup, normalizer: Normalizer) -> ObjectGroup:
    """The same group with fewer clauses.

    Those that always hold are left out; those about one member say what its value must satisfy and
    whether it is required; atoms that cannot hold are left out of the others.
    """
    trivially_empty: TriviallyEmpty = normalizer.trivially_empty
    while True:
        keys = trivially_empty.keys(group)
        rules: list[Rule] = []
        required: dict[str, None] = dict.fromkeys(group.required)
        kept: list[Clause] = []
        for clause in group.clauses:
            if _holds_always(keys, clause, required):
                continue
            # Without any open atom the clause stays, as a obligation that nothing reaches.
            atoms = trivially_empty.open_atoms(keys, clause) or clause
            about = _about_one_member(keys, atoms)
            if about is None:
                kept.append(atoms)
                continue
            name, value, optional = about
            if not optional:
                required[name] = None
            if not _implied(keys, name, value):
                rules.append((Keys((name,)), value))
        settled = (len(required) == len(group.required) and not rules) or not kept
        every = group.rules + tuple(dict.fromkeys(rules))
        group = ObjectGroup(
            _telling(every, trivially_empty) if settled else every,
            tuple(required),
            group.min_members,
            group.max_members,
            tuple(dict.fromkeys(kept)),
        )
        if settled:
            return group


def told_apart(group: ObjectGroup, normalizer: Normalizer) -> ObjectGroup:
    """The objects of a settled group that have one more member, which makes all clauses hold: an optional discriminator.

    Without one, the group itself.  Objects that lack the member are told from those of other branches by all else that
    these say, which may double the work with each branch.
    """
    trivially_empty: TriviallyEmpty = normalizer.trivially_empty
    keys = trivially_empty.keys(group)
    if group.max_members is not None and len(group.required) >= group.max_members:
        return group
    for name in keys.declared:
        required: dict[str, None] = dict.fromkeys((*group.required, name))
        for clause in group.clauses:
            if not _holds_always(keys, clause, required):
                break
        else:
            if not trivially_empty.conjunction(keys.value(name)):
                return replace(group, required=tuple(required), clauses=())
    return group


def _telling(rules: tuple[Rule, ...], trivially_empty: TriviallyEmpty) -> tuple[Rule, ...]:
    """The rules of a group, without those that say nothing new: opposites of what a value cannot be anyway."""
    wanted: dict[str, list[Literal]] = {}
    for keys, value in rules:
        if _is_one(keys):
            wanted.setdefault(keys.names[0], []).extend(v for v in value if not _is_opposite(v))
    declared: set[str] = set()
    found: dict[Rule, None] = {}
    for keys, value in rules:
        new = not declared.issuperset(keys.names)
        if not new and not value:
            continue
        if not new and len(value) == 1 and _is_one(keys) and _is_opposite(value[0]):
            shut_out = value[0].negation()
            if _excluded(trivially_empty, wanted[keys.names[0]], shut_out):
                continue
        declared.update(keys.names)
        found[keys, value] = None
    return tuple(found)


def _excluded(trivially_empty: TriviallyEmpty, wanted: list[Literal], value: Literal) -> bool:
    """Whether what is wanted of a member is seen to exclude a value."""
    for literal in wanted:  # noqa: SIM110
        if trivially_empty.conjunction((literal, value)):
            return True
    return False


def _is_one(keys: Keys) -> bool:
    return len(keys.names) == 1 and not keys.outside and not keys.patterns and keys.schemas is None


def _is_opposite(literal: Literal) -> bool:
    return literal.negated if isinstance(literal, Node) else isinstance(literal, Neither)


def _about_one_member(keys: KeyMap, clause: Clause) -> tuple[str, Conjunction, bool] | None:
    """The member that all atoms of a clause are about, what its value must satisfy, whether it may be absent."""
    found: str | None = None
    values: list[Conjunction] = []
    for atom in clause:
        if isinstance(atom, Absent):
            name = atom.name
        else:
            names, others = keys.candidates(atom.keys)
            names = [name for name in names if not is_false(keys.value(name))]
            if others or len(names) != 1:
                return None
            name = names[0]
            values.append(atom.value)
        if found is not None and name != found:
            return None
        found = name
    if found is None:
        return None
    if not values:
        return found, (nothing("(absent)"),), True
    value = values[0]
    if len(values) > 1:
        value = () if () in values else (Either(value[0].pointer, tuple(values)),)
    return found, value, len(values) < len(clause)


def _holds_always(keys: KeyMap, clause: Clause, required: dict[str, None]) -> bool:
    for atom in clause:
        if isinstance(atom, Absent):
            if is_false(keys.value(atom.name)):
                return True
            continue
        for name in keys.candidates(atom.keys)[0]:
            if name in required and _implied(keys, name, atom.value):
                return True
    return False


def _implied(keys: KeyMap, name: str, value: Conjunction) -> bool:
    """Whether a member of this name is seen to satisfy more than ``value`` anyway."""
    if not value:
        return True
    trivially_empty: TriviallyEmpty = keys.normalizer.trivially_empty
    return trivially_empty.conjunction(conjoin(keys.value(name), negation(value, "")))
