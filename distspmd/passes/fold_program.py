"""Writes a fold into the program: containers, maps and contractions get digits for dimensions."""

from __future__ import annotations

import copy
from dataclasses import replace
from string import ascii_letters

import sympy
from dace import SDFG, data, subsets, symbolic
from dace.sdfg import nodes
from dace.sdfg.replace import replace_dict

from distspmd.analysis.iteration_spaces import (
    IterationSpace,
    main_map,
    parameters_of,
    pure_expansion,
)
from distspmd.expressions.ir import Expression, IndexValue, replace_leaves
from distspmd.nodes.contraction import Contraction
from distspmd.nodes.subscripts import Dimension, plain_letter
from distspmd.passes.fold_indices import (
    Folding,
    containers_of,
    is_leaf,
    operands,
    parameter_of_letter,
    values_in,
)

Subset = list[tuple[sympy.Expr, sympy.Expr, sympy.Expr]]


def fold_containers(sdfg: SDFG, folding: Folding) -> dict[str, tuple[int, ...]]:
    """Fold the containers, in place.

    Returns:
        The shapes that arguments and results have for the caller.
    """
    shapes = {}
    for name, dimensions in folding.dimensions.items():
        container = sdfg.arrays[name]
        own = tuple(int(extent) for extent in container.shape)
        if not container.transient:
            shapes[name] = own
        found: list[int] = []
        for d, extent in enumerate(own):
            found += folding.fold.extents(extent) if d in dimensions else (extent,)
        folded = data.Array(
            container.dtype,
            found,
            transient=container.transient,
            storage=container.storage,
            lifetime=container.lifetime,
            debuginfo=container.debuginfo,
        )
        sdfg.arrays[name] = folded
    return shapes


def fold_space(space: IterationSpace, folding: Folding) -> IterationSpace:
    """Rewrite a space in place; the space as it is then."""
    touches = any(name in folding.dimensions for name in containers_of(space))
    if not touches and space.name not in folding.parameters:
        return space
    if isinstance(space.node, nodes.MapEntry):
        return _fold_map(space, folding)
    return _fold_contraction(space, folding)


# --- maps ---


def _fold_map(space: IterationSpace, folding: Folding) -> IterationSpace:
    entry, state = space.node, space.state
    assert isinstance(entry, nodes.MapEntry)
    own = folding.parameters.get(space.name, [])
    if own:
        _split_parameters(space, folding, own)
    values = values_in(space)
    scope = state.scope_subgraph(entry)
    inside = {id(edge): edge for edge in scope.edges()}
    border = [*state.in_edges(entry), *state.out_edges(state.exit_node(entry))]
    for edge in [*inside.values(), *border]:
        if edge.data.is_empty() or edge.data.data not in folding.dimensions:
            continue
        dimensions = folding.dimensions[edge.data.data]
        found: Subset = []
        for d, extent in enumerate(edge.data.subset.ranges):
            if d not in dimensions:
                found.append(extent)
            elif id(edge) in inside and is_leaf(edge):
                digits = folding.fold.digits(sympy.sympify(extent[0]), values)
                assert digits is not None, "units were chosen so that all indices have digits"
                found += [(digit, digit, sympy.Integer(1)) for digit in digits]
            else:
                whole = folding.sdfg.arrays[edge.data.data].shape[len(found) :]
                found += [(0, n - 1, 1) for n in whole[: len(folding.fold.weights)]]
        edge.data = copy.deepcopy(edge.data)
        edge.data.subset = subsets.Range(found)
    parameters, ranges = parameters_of(entry)
    return replace(
        space, parameters=parameters, ranges=ranges, dimensions=_dimensions(space, folding)
    )


def _split_parameters(space: IterationSpace, folding: Folding, own: list[str]) -> None:
    """Let digits run in the place of parameters."""
    entry = space.node
    assert isinstance(entry, nodes.MapEntry)
    names: list[str] = []
    ranges: Subset = []
    text, symbols = {}, {}
    for name, extent in zip(map(str, entry.map.params), entry.map.range.ranges, strict=True):
        if name not in own:
            names.append(name)
            ranges.append(extent)
            continue
        digits = folding.digits[space.name, name]
        first = int(extent[0]) // folding.fold.round
        last = (int(extent[1]) + 1) // folding.fold.round
        _, *lower = folding.fold.extents(folding.fold.round)
        names += digits
        ranges += [(first, last - 1, 1), *((0, n - 1, 1) for n in lower)]
        text[name] = " + ".join(
            f"{weight}*{digit}" for weight, digit in zip(folding.fold.weights, digits, strict=True)
        )
        symbols[symbolic.pystr_to_symbolic(name)] = symbolic.pystr_to_symbolic(text[name])
        text[name] = f"({text[name]})"
    entry.map.params = names
    entry.map.range = subsets.Range(ranges)
    replace_dict(space.state.scope_subgraph(entry), text, symbols)


def _dimensions(space: IterationSpace, folding: Folding) -> tuple[str, ...]:
    """What a schedule calls the parameters; none where that is what they are called."""
    if not space.dimensions:
        return ()
    found: list[str] = []
    own = folding.parameters.get(space.name, ())
    for parameter, name in zip(space.parameters, space.dimensions, strict=True):
        endings = ("round", "part", "in")[: len(folding.fold.weights)]
        found += [f"{name}_{ending}" for ending in endings] if parameter in own else [name]
    return tuple(found)


# --- contractions ---


def _fold_contraction(space: IterationSpace, folding: Folding) -> IterationSpace:
    node, state = space.node, space.state
    assert isinstance(node, Contraction)
    own = folding.parameters.get(space.name, [])
    found = operands(space)
    letters = {x for _, term in found for dim in term for x, _ in dim}
    taken = {*map(str, state.sdfg.symbols), *folding.sdfg.arrays}
    fresh = (x for x in ascii_letters if x not in letters and parameter_of_letter(x) not in taken)
    digits: dict[str, tuple[str, ...]] = {}
    for x in sorted(letters):
        if parameter_of_letter(x) in own:
            digits[x] = tuple(next(fresh) for _ in folding.fold.weights)
    terms = []
    for edge, term in found:
        text, ranges = [], []
        for d, (dim, extent) in enumerate(zip(term, edge.data.subset.ranges, strict=False)):
            if d not in folding.dimensions.get(edge.data.data, ()):
                text.append(_text(dim))
                ranges.append(extent)
            elif plain_letter(dim) in digits:
                text += digits[dim[0][0]]
                ranges += _window(folding, extent)
            else:
                text += [next(fresh), _text(dim)]
                ranges += _part_of_round(folding, extent)
        terms.append("".join(text))
        edge.data = copy.deepcopy(edge.data)
        edge.data.subset = subsets.Range(ranges or edge.data.subset.ranges)
    node.subscripts = ",".join(terms[:-1]) + "->" + terms[-1]
    if node.reduced is not None:
        weights = folding.fold.weights
        node.expression = str(replace_leaves(node.reduced, lambda x: _leaf(x, digits, weights)))
    expansion = pure_expansion(state, node)
    parameters, ranges_now = parameters_of(main_map(expansion)[1])
    for x, names in digits.items():
        key = space.name, parameter_of_letter(x)
        folding.digits[key] = tuple(map(parameter_of_letter, names))
    dimensions = _names(space, folding, parameters)
    return replace(
        space,
        parameters=parameters,
        ranges=ranges_now,
        expansion=expansion,
        dimensions=dimensions,
    )


def _names(space: IterationSpace, folding: Folding, parameters: tuple[str, ...]) -> tuple[str, ...]:
    """What a schedule calls the letters."""
    if not space.dimensions:
        return ()
    known = dict(zip(space.parameters, space.dimensions, strict=True))
    for parameter in folding.parameters.get(space.name, ()):
        endings = ("round", "part", "in")
        pairs = zip(folding.digits[space.name, parameter], endings, strict=False)
        known |= {digit: f"{known[parameter]}_{ending}" for digit, ending in pairs}
    return tuple(known.get(parameter, parameter) for parameter in parameters)


def _window(folding: Folding, extent: tuple[sympy.Expr, ...]) -> Subset:
    """Whole rounds of a dimension."""
    first = int(extent[0]) // folding.fold.round
    last = (int(extent[1]) + 1) // folding.fold.round
    _, *lower = folding.fold.extents(folding.fold.round)
    return [(first, last - 1, 1), *((0, n - 1, 1) for n in lower)]


def _part_of_round(folding: Folding, extent: tuple[sympy.Expr, ...]) -> Subset:
    """A part of one round, of units of one element."""
    at, first = divmod(int(extent[0]), folding.fold.round)
    last = int(extent[1]) - at * folding.fold.round
    return [(at, at, 1), (first, last, 1)]


def _text(dimension: Dimension) -> str:
    """An index of a contraction as text."""
    if plain_letter(dimension):
        return dimension[0][0]
    return "(" + "+".join(f"{f if f > 1 else ''}{x}" for x, f in dimension) + ")"


def _leaf(
    leaf: Expression, digits: dict[str, tuple[str, ...]], weights: tuple[int, ...]
) -> Expression:
    """Digits in the place of a letter whose value is used."""
    if not isinstance(leaf, IndexValue):
        return leaf
    terms: list[tuple[str, int]] = []
    for letter, factor in leaf.terms:
        own = digits.get(str(letter))
        if own is None:
            terms.append((str(letter), factor))
        else:
            terms += [(x, factor * weight) for x, weight in zip(own, weights, strict=True)]
    return IndexValue(tuple(terms), leaf.constant, leaf.dtype)
