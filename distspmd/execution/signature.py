"""The signature of a program on a rank: what the rank passes and gets, and the checks of it.

It needs neither a communicator nor the compiled program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.codegen.build_record import Build
from distspmd.errors import ArgumentError
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout
from distspmd.lowering import CONTEXT, Lowering
from distspmd.runtime.calls.form import CallForm
from distspmd.runtime.calls.missing_result import MissingResult, missing_result
from distspmd.runtime.calls.portable import Unsent


@dataclass(frozen=True)
class Parameter:
    """An argument or a result of the user's program, and where it goes in the call.

    Attributes:
        name: its name.
        position: among the arguments of the compiled function.
        dtype: of its elements.
        extents: of the whole array.
        shape: of what this rank passes or gets: the whole array, or its tile.
        layout: in which the caller holds it; None for all of it on rank 0.
        is_here: whether this rank passes or gets it.
        is_scalar: whether the caller passes a scalar.
        is_point: whether the caller passes an array of no dimensions, which may be written.
        is_written: whether the program writes it.
    """

    name: str
    position: int
    dtype: np.dtype[Any]
    extents: tuple[int, ...]
    shape: tuple[int, ...]
    layout: Layout | None
    is_here: bool
    is_scalar: bool
    is_written: bool
    is_point: bool = False

    def __str__(self) -> str:
        """``float64[8, 4]``."""
        return f"{self.dtype}{[] if self.is_point else list(self.shape)}"


@dataclass(frozen=True)
class Signature:
    """What a rank passes to a program, and what it gets.

    Attributes:
        program: the program's name, for messages.
        rank: whose.
        parameters: arguments by name, in the order of the compiled function.
        results: in the order in which they are returned.
        positional: names of the arguments in the order of the user's program.
        call_form: in which the caller gets results.
    """

    program: str
    rank: int
    parameters: Mapping[str, Parameter]
    results: Sequence[Parameter]
    positional: Sequence[str]
    call_form: CallForm = field(default_factory=CallForm)

    @classmethod
    def of(cls, built: Build, lowering: Lowering, rank: int) -> Signature:
        """The signature of a compiled program on a rank."""
        internal = {*lowering.symbols, CONTEXT, *built.tiles}
        found = []
        for position, argument in enumerate(built.arguments, start=1):
            if argument.name in internal:
                continue
            layout = lowering.argument_layouts.get(argument.name)
            extents = lowering.call_form.shapes.get(
                argument.name, layout.extents if layout else argument.shape
            )
            found.append(
                Parameter(
                    argument.name,
                    position,
                    np.dtype(argument.dtype),
                    extents,
                    extents if layout is None else _shape_of(layout, rank, extents),
                    layout,
                    is_here=rank < layout.ranks if layout else rank == 0,
                    is_scalar=argument.name in lowering.call_form.scalars,
                    is_written=argument.name in lowering.written,
                    is_point=argument.name in lowering.call_form.points,
                )
            )
        parameters = {p.name: p for p in found if not p.name.startswith("__return")}
        results = [p for p in found if p.name.startswith("__return")]
        results.sort(key=lambda p: (len(p.name), p.name))
        form = lowering.call_form
        return cls(built.name, rank, parameters, results, built.positional, form)

    @cached_property
    def takes_part(self) -> bool:
        """Whether what the rank passes is looked at, or it gets something."""
        every = (*self.parameters.values(), *self.results)
        return self.rank == 0 or any(parameter.is_here for parameter in every)

    @cached_property
    def elsewhere(self) -> tuple[MissingResult | None, ...]:
        """What this rank gets for each result that others have; None for those that it has."""
        return tuple(
            None if p.is_here else missing_result(self.program, *_place_of(p.layout))
            for p in self.results
        )

    @cached_property
    def objects(self) -> tuple[str, ...]:
        """Names of the objects of Python that the program may return."""
        return tuple(dict.fromkeys(each.name for each in self.call_form.objects))

    @cached_property
    def gives_objects_to_others(self) -> bool:
        """Whether other ranks than the first get one of these."""
        layouts = [self.results[each.number].layout for each in self.call_form.objects]
        return any(layout is not None and layout.ranks > 1 for layout in layouts)

    @cached_property
    def is_single(self) -> bool:
        """Whether the program returns one array, not a tuple."""
        return [p.name for p in self.results] == ["__return"]

    def layout(self, name: str) -> Layout:
        """In which layout the caller holds an argument or a result.

        Raises:
            ArgumentError: the program has none of that name.
        """
        known = {p.name: p for p in (*self.parameters.values(), *self.results)}
        if name not in known:
            raise ArgumentError(
                f"{self.program} has no argument or result {name!r}; it has "
                f"{', '.join(known) or 'none'}."
            )
        return known[name].layout or Layout.root(known[name].extents)

    def tile(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """What this rank passes for an argument, cut out of the whole array: a copy.

        Raises:
            ArgumentError: the program has none of that name, or the array has another shape.
        """
        layout = self.layout(name)
        own = next(p for p in (*self.parameters.values(), *self.results) if p.name == name)
        if np.shape(array) != own.extents:
            raise ArgumentError(
                f"{self.program}: {name!r} has the shape {list(own.extents)}, but the "
                f"array given to cut a tile from has {list(np.shape(array))}."
            )
        folded = np.reshape(array, layout.extents)  # of which dimensions were dealt
        tile = np.array(folded[intervals.slices(layout.box(self.rank))], order="C")
        return tile.reshape(own.shape)

    def bind(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """Give positional arguments their names.

        Raises:
            ArgumentError: more arguments than the program takes, or one that is given twice.
        """
        names = self.call_form.parameters or self.positional
        arguments = self.call_form.together(arguments)
        if len(arguments) > len(names):
            raise ArgumentError(
                f"{self.program} takes {len(names)} arguments ({', '.join(names)}), but "
                f"{len(arguments)} were given."
            )
        bound = dict(zip(names, arguments, strict=False))
        if self.call_form.has_other_names:
            bound, named = self.call_form.as_inside(bound), self.call_form.as_inside(named)
        twice = [name for name in bound if name in named]
        if twice:
            raise ArgumentError(f"{self.program}: the argument {twice[0]!r} is given twice.")
        return {**bound, **named}

    def check(self, bound: Mapping[str, Any]) -> dict[int, NDArray[Any]]:
        """The array of each argument that the rank passes, by its position in the call.

        Raises:
            ArgumentError: an argument is missing, unknown, or of another type, shape or order.
        """
        arrays: dict[int, NDArray[Any]] = {}
        if self.call_form.fixed:
            bound = self._without_fixed(bound)
        for name, parameter in self.parameters.items():
            if not parameter.is_here:
                continue
            if name not in bound:
                raise ArgumentError(
                    f"{self.program}: the argument {name!r} is missing on rank {self.rank}; "
                    f"pass {name}=<{parameter}>."
                )
            value = bound[name]
            if parameter.is_point:
                value = self._point(parameter, value)
            elif parameter.is_scalar:
                value = self._scalar(parameter, value)
            if not parameter.is_scalar and (
                not isinstance(value, np.ndarray)
                or value.dtype != parameter.dtype
                or value.shape != parameter.shape
                or not (
                    (flags := value.flags).carray  # contiguous, aligned and writeable
                    or (flags.c_contiguous and flags.aligned and not parameter.is_written)
                )
                or (type(value) is not np.ndarray and isinstance(value, np.ma.MaskedArray))
            ):
                self._refuse_unless_on_device(parameter, value)
            arrays[parameter.position] = value
        if self.rank == 0 and len(bound) > len(self.parameters):
            known = {*self.parameters, *self.positional}
            unknown = [name for name in bound if name not in known]
            if unknown:
                raise ArgumentError(
                    f"{self.program} has no argument {unknown[0]!r}; it has "
                    f"{', '.join(self.positional) or 'none'}."
                )
        return arrays

    def _without_fixed(self, bound: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments without those for whose values the program was made."""
        fixed = self.call_form.fixed
        for name, value in fixed.items():
            if name in bound and not _is_same(bound[name], value):
                raise ArgumentError(
                    f"{self.program} was made for {name}={value!r}, which decides its code, but "
                    f"{bound[name]!r} was given. Make it again for that value; a function that "
                    "@distspmd.program decorates does so by itself."
                )
        return {name: value for name, value in bound.items() if name not in fixed}

    def check_apart(self, arrays: Mapping[int, NDArray[Any]]) -> None:
        """See to it that what the program writes has no memory in common with other arguments.

        Args:
            arrays: what :meth:`check` returned.

        Raises:
            ArgumentError: names two arguments that overlap.
        """
        owners = set()
        for array in arrays.values():
            if array.base is None:
                owners.add(id(array))
            elif (memory := getattr(array, "memory", None)) is not None:  # of a device
                owners.add(id(memory))
        if len(owners) == len(arrays) or len(arrays) < 2:
            return  # each has memory of its own
        by_position = {p.position: p for p in self.parameters.values()}
        begins = {position: _begin(array) for position, array in arrays.items() if array.nbytes}
        spans = sorted(
            (begin, begin + arrays[position].nbytes, position) for position, begin in begins.items()
        )
        before: list[tuple[int, int]] = []  # ends and positions of those that reach this far
        for begin, end, position in spans:
            before = [(reach, other) for reach, other in before if begin < reach]
            for _, other in before:
                pair = by_position[other], by_position[position]
                if pair[0].is_written or pair[1].is_written:
                    written, shared = pair if pair[0].is_written else pair[::-1]
                    raise ArgumentError(
                        f"{self.program}: the argument {written.name!r}, which the program writes, "
                        f"shares memory with {shared.name!r}. Pass {shared.name}.copy()."
                    )
            before.append((end, position))

    def allocate(self) -> list[NDArray[Any] | None]:
        """New arrays for the results that this rank gets; None for the others."""
        return [np.empty(p.shape, p.dtype) if p.is_here else None for p in self.results]

    def of_this_rank(self, bound: dict[str, Any]) -> dict[str, Any]:
        """What is passed, without results of other ranks where the program takes none here.

        Raises:
            ArgumentError: it takes one here.
        """
        others = [name for name, value in bound.items() if isinstance(value, MissingResult)]
        for name in others:
            if name in self.parameters and self.parameters[name].is_here:
                self._refuse(self.parameters[name], bound[name])
        return {n: v for n, v in bound.items() if n not in others} if others else bound

    def completed(self, results: Sequence[Any]) -> list[Any]:
        """Results of this rank, with what stands for those that others have.

        Args:
            results: None for each of the others; empty where the rank has none.
        """
        if not results:
            return list(self.elsewhere)
        return [
            there if here is None else here
            for here, there in zip(results, self.elsewhere, strict=True)
        ]

    def returned(
        self,
        results: Sequence[Any],
        handed: Callable[[Any], Any] = lambda result: result,
        objects: Callable[[str], Any] | None = None,
    ) -> Any:
        """What the caller gets for results: arrays, and numbers of NumPy; a tuple of several.

        Args:
            results: arrays, and what stands for those that are elsewhere.
            handed: what the caller gets for one of them.
            objects: an object of Python that the program returns, by its name.
        """
        found = [
            result[0] if parameter.is_scalar and not isinstance(result, MissingResult) else result
            for parameter, result in zip(self.results, results, strict=True)
        ]
        if self.call_form.returned is not None:
            return self.call_form.arrange(found, handed, objects)
        found = [r if isinstance(r, MissingResult) else handed(r) for r in found]
        return found[0] if self.is_single else tuple(found)

    def _scalar(self, parameter: Parameter, value: Any) -> NDArray[Any]:
        """A number as an array of one element."""
        start = f"{self.program}: the argument {parameter.name!r} is a scalar of {parameter.dtype}"
        if hasattr(value, "misfit"):
            raise ArgumentError(
                f"{start}, but an array in the memory of a device was given. Pass its number."
            )
        array = np.asarray(value)
        if array.size != 1 or not np.can_cast(array.dtype, parameter.dtype, "same_kind"):
            raise ArgumentError(f"{start}, but {_describe(value)} was given.")
        converted = array.astype(parameter.dtype).reshape(1)
        if parameter.dtype.kind in "iu" and converted[0] != array.reshape(1)[0]:
            least, most = np.iinfo(parameter.dtype).min, np.iinfo(parameter.dtype).max
            raise ArgumentError(
                f"{start}, from {least} to {most}, but {_describe(value)} was given."
            )
        return converted

    def _point(self, parameter: Parameter, value: Any) -> Any:
        """An array of no dimensions as one of one element, in the same memory."""
        if (type(value) is not np.ndarray and not hasattr(value, "misfit")) or value.shape:
            raise ArgumentError(
                f"{self.program}: the argument {parameter.name!r} must be {parameter}, an array of "
                f"no dimensions, but {_describe(value)} was given. Pass np.array(...) of a number."
            )
        return value.reshape((1,))

    def _refuse_unless_on_device(self, parameter: Parameter, value: Any) -> None:
        """Refuse what is no fitting array; one in the memory of the program's device may fit."""
        misfit = getattr(value, "misfit", None)  # of a DeviceView; programs of the host know none
        if misfit is None:
            self._refuse(parameter, value)
            return
        text = misfit(parameter.dtype, parameter.shape, parameter.is_written)
        if text:
            comma = "" if text.startswith("that") else ","
            raise ArgumentError(
                f"{self.program}: the argument {parameter.name!r} must be {parameter}{comma} {text}"
            )

    def _refuse(self, parameter: Parameter, value: Any) -> None:
        name = parameter.name
        if isinstance(value, MissingResult):
            raise ArgumentError(
                f"{self.program} takes the argument {name!r} from rank {self.rank}, but {value!r}: "
                'write results="replicated" where it is made, or let it come from rank 0.'
            )
        start = f"{self.program}: the argument {name!r} must be {parameter}"
        if parameter.layout:
            start += f" on rank {self.rank}, its part of {parameter.layout}"
        if not isinstance(value, np.ndarray):
            device = getattr(value, "device", None)
            kind = getattr(device, "type", "cpu")  # of a tensor of PyTorch
            if hasattr(value, "__cuda_array_interface__") or kind != "cpu":
                raise ArgumentError(
                    f"{start}, but it is a {type(value).__name__} on the device {device}. Pass an "
                    "array of the host, or compile the program with device=."
                )
            raise ArgumentError(f"{start}, but {_describe(value)} was given. Pass a NumPy array.")
        if value.dtype != parameter.dtype:
            raise ArgumentError(
                f"{start}, but it has the type {value.dtype}. "
                f"Pass {name}.astype('{parameter.dtype}')."
            )
        if value.shape != parameter.shape:
            raise ArgumentError(f"{start}, but it has the shape {list(value.shape)}.")
        if isinstance(value, np.ma.MaskedArray):
            raise ArgumentError(f"{start}, but it has a mask. Pass {name}.filled().")
        if not value.flags.aligned:
            raise ArgumentError(
                f"{start}, but it begins at an address that is no multiple of "
                f"{parameter.dtype.alignment}. Pass {name}.copy()."
            )
        if value.flags.c_contiguous:
            raise ArgumentError(
                f"{start} that can be written, because the program writes it, but it is read-only. "
                f"Pass {name}.copy()."
            )
        raise ArgumentError(
            f"{start}, C-contiguous, but it has the strides {value.strides} (bytes). Pass "
            f"np.ascontiguousarray({name})."
        )


def _shape_of(layout: Layout, rank: int, extents: tuple[int, ...]) -> tuple[int, ...]:
    """What a rank passes: the whole as the caller knows it, or a tile as the program folds it."""
    is_whole = layout.box(rank) == intervals.whole(layout.extents)
    return extents if is_whole else intervals.shape(layout.box(rank))


def _place_of(layout: Layout | None) -> tuple[str, int]:
    """Where a result is, and the first rank that has not got it."""
    if layout is None:
        return "on rank 0", 1
    return f"on the {layout.ranks} ranks of its layout {layout}", layout.ranks


def _begin(array: Any) -> int:
    """Where an array begins, of the host or of a device."""
    return int(array.ctypes.data if isinstance(array, np.ndarray) else array.lies.address)


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}{list(value.shape)}"
    return f"{value!r} ({type(value).__name__})" if len(repr(value)) < 60 else type(value).__name__


def _is_same(given: Any, fixed: Any) -> bool:
    if isinstance(fixed, Unsent):
        return fixed.may_be(given)
    try:
        return given is fixed or (type(given) is type(fixed) and bool(given == fixed))
    except (TypeError, ValueError):
        return False
