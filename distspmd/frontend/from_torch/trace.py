"""A user's function, as it stands, traced to operators of ATen on named tensors.

The modules and optimizers that the function closes over are found, and traced tensors stand in for
theirs while the function runs once on tensors without data. Afterwards everything is as before,
except the state of an optimizer, which is made as its first step would make it.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx, nn
from torch._functorch._aot_autograd.functional_utils import from_fun, has_data_mutation, to_fun
from torch._subclasses.fake_tensor import FakeTensorMode
from torch._subclasses.functional_tensor import FunctionalTensorMode
from torch.distributions import Distribution
from torch.fx import traceback as fx_traceback
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.nn.attention import SDPBackend, sdpa_kernel

from distspmd.codegen.build import warm_up
from distspmd.errors import UnsupportedProgram
from distspmd.frontend.from_torch.assumptions import Assumptions
from distspmd.frontend.from_torch.closures import Closed, closed_over
from distspmd.frontend.from_torch.decompositions import (
    decompositions,
    matrices_are_not_checked,
)
from distspmd.frontend.from_torch.explained import UNKNOWN, explained, is_of_data
from distspmd.frontend.from_torch.fitting_numbers import check_numbers
from distspmd.frontend.from_torch.known_values import KnownValues
from distspmd.frontend.from_torch.memory_order import put_in_order
from distspmd.frontend.from_torch.moving import Moved, Watch
from distspmd.frontend.from_torch.optimizers import (
    INSIDE,
    give_own_memory,
    optimizer_slots,
    swapped_optimizers,
)
from distspmd.frontend.from_torch.outside_tensors import Outside, Place
from distspmd.frontend.from_torch.provenance import Places
from distspmd.frontend.from_torch.run_time_numbers import Guards, placed
from distspmd.frontend.from_torch.scalers import scaler_slots, swapped_scalers
from distspmd.frontend.from_torch.slots import (
    Gradients,
    Slot,
    check_shared,
    forget_gradients,
)
from distspmd.frontend.from_torch.swapped_modules import STANDS_FOR, Left, swapped_modules
from distspmd.frontend.from_torch.unreached import Unreached


@dataclass
class Trace:
    """What was traced.

    Attributes:
        graph: pure operators; ``copy_`` into a placeholder is an update in place.
        slots: the tensors behind the first placeholders.
        inputs: names of the caller's arguments, behind the other placeholders.
        results: what the function returns, with the number of each result in its place.
        assumptions: what else of the caller's is in the graph.
        constants: tensors that the function makes of numbers, by their names in the graph.
    """

    graph: fx.Graph
    slots: list[Slot]
    inputs: list[str]
    results: Any
    assumptions: Assumptions
    constants: Mapping[str, torch.Tensor] = field(default_factory=dict)


def trace(
    function: Callable[..., Any],
    inputs: Sequence[Any],
    names: Sequence[str],
    varying: Collection[str] = (),
) -> Trace:
    """Trace a function at example inputs, which are tensors.

    Args:
        function: as it stands.
        inputs: the examples.
        names: of its arguments.
        varying: settings of optimizers that the program reads at each call, as it reads rates.

    Raises:
        UnsupportedProgram: the function does what no traced program can.
    """
    warm_up()
    closed = closed_over(function)
    outside = Outside.of(function, closed)
    outside.give_optimizers(closed)
    shared = give_own_memory(closed)
    put_in_order(closed)
    with _surroundings(), fx_traceback.preserve_node_meta():
        try:
            traced, state = _traced(closed, outside, function, varying, inputs)
        except UnsupportedProgram:
            raise
        except Exception as error:
            raise UnsupportedProgram(explained(error)) from error
    slots = state.slots
    check_numbers(traced.graph)
    _forget_aliases(traced.graph)
    traced.graph.eliminate_dead_code()
    _check_constants(traced)
    _check_shapes(traced.graph)
    check_shared(traced.graph, slots, shared)
    state.known.check_written(_check_written(traced.graph, slots))
    forget_gradients(traced.graph, slots, state.gradients.kept)
    assumptions = Assumptions(closed, function, varying, state.guards, state.gradients)
    constants = {
        str(node.target): getattr(traced, str(node.target))
        for node in traced.graph.nodes
        if node.op == "get_attr"
    }
    return Trace(traced.graph, slots, list(names), state.results, assumptions, constants)


def _traced(
    closed: Closed,
    outside: Outside,
    function: Callable[..., Any],
    varying: Collection[str],
    inputs: Sequence[Any],
) -> tuple[fx.GraphModule, _Run]:
    """Trace, and again where tensors outside of modules were used, of which nobody knew."""
    watch = Watch(outside)
    while True:
        slots = list(_slots(closed, varying))
        examples = _with_a_device([slot.fetch().detach() for slot in slots])
        met: dict[str, Place] = {}

        left = Left()

        def make(slots: list[Slot] = slots, met: dict[str, Place] = met, left: Left = left) -> _Run:
            return _Run(closed, slots, function, varying, outside, met, left, watch)

        try:
            first, state = _run(make, examples, list(inputs))
            if left.found:
                left.check(first.graph, _run(make, examples, list(inputs))[0].graph)
            return first, state
        except Moved:
            watch.locates = True
            _run(make, examples, list(inputs))
            raise
        except _MoreTensors:
            for place in met.values():
                closed.take(place.name, place.tensor, place.get)


class _MoreTensors(UnsupportedProgram):
    """The function uses or makes tensors for which none stood in."""


def traced_before(
    function: Callable[..., Any], varying: Collection[str], gradients: Gradients
) -> tuple[list[Slot], Assumptions]:
    """The slots and assumptions of a function, which another process has traced as it stands.

    Args:
        function, varying: as :func:`trace` takes them.
        gradients: what becomes of them.
    """
    closed = closed_over(function)
    give_own_memory(closed)
    put_in_order(closed)
    closed.leaves_gradients = bool(gradients.kept)
    slots = list(_slots(closed, varying))
    return slots, Assumptions(closed, function, varying, gradients=gradients)


def _with_a_device(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Tensors without memory as the tracer knows those that have some: on the CPU."""
    if not any(tensor.is_meta for tensor in tensors):
        return list(tensors)
    mode = FakeTensorMode(
        allow_fallback_kernels=True, shape_env=ShapeEnv(), static_shapes=True
    )  # as make_fx has it
    with mode:
        return [
            torch.empty(tensor.shape, dtype=tensor.dtype)
            if tensor.is_meta
            else mode.from_tensor(tensor, static_shapes=True)
            for tensor in tensors
        ]


def _run(
    make: Callable[[], _Run], examples: list[torch.Tensor], inputs: list[Any]
) -> tuple[fx.GraphModule, _Run]:
    """Trace as if torch compiled; where that fails, for a library takes another way, as run.

    Of two failures the first is told, unless the second is that data decide what is run.
    """
    state = make()
    try:
        return _pure(state, examples, inputs), state
    except UnsupportedProgram:
        raise
    except Exception as error:
        torch.compiler._is_compiling_flag = False
        state = make()
        try:
            return _pure(state, examples, inputs), state
        except Exception as other:
            raise (other if is_of_data(other) else error) from None
        finally:
            torch.compiler._is_compiling_flag = True


def _pure(state: _Run, examples: Sequence[torch.Tensor], inputs: Sequence[Any]) -> fx.GraphModule:
    """The graph of a run, of pure operators after decomposition.

    What the run writes in place is a new tensor at once, of which views are made anew; arguments
    that have been written get their values at the end.
    """

    def run(*given: Any) -> list[Any]:
        with FunctionalTensorMode():
            own = [to_fun(each) for each in given]
            results = state(own[: len(examples)], own[len(examples) :])
            found: list[Any] = [from_fun(result) for result in results]
            written: list[tuple[Any, Any]] = [
                (before, from_fun(now))
                for before, now in zip(given, own, strict=True)
                if isinstance(before, torch.Tensor) and has_data_mutation(now)
            ]
        for before, now in written:
            before.copy_(now)
        return found

    with matrices_are_not_checked():
        return make_fx(run, decomposition_table=decompositions(), tracing_mode="fake")(
            *examples, *inputs
        )


def _forget_aliases(graph: fx.Graph) -> None:
    """Drop what only names a tensor again."""
    for node in graph.nodes:
        if node.op == "call_function" and str(node.target) in (
            "aten.alias.default",
            "aten.detach.default",
        ):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


def _check_constants(module: fx.GraphModule) -> None:
    """Refuse tensors of the caller that nobody knows of; those made of numbers become constants."""
    for node in module.graph.nodes:
        if node.op == "get_attr" and any(
            "lift_fresh" not in str(user.target) for user in node.users
        ):
            raise UnsupportedProgram(UNKNOWN)


def _check_shapes(graph: fx.Graph) -> None:
    for node in graph.nodes:
        shape = getattr(node.meta.get("val"), "shape", ())
        if any(isinstance(extent, torch.SymInt) for extent in shape):
            raise UnsupportedProgram(
                f"the shape of what {node.target} gives depends on the values of tensors. Write it "
                "without: with a mask of the whole shape, and torch.where."
            )


def _check_written(graph: fx.Graph, slots: Sequence[Slot]) -> list[str]:
    """Names of the tensors that a function writes; it may not write a rate."""
    found = []
    for node, slot in zip(graph.nodes, slots, strict=False):  # placeholders come first
        if any("copy_" in str(user.target) and user.args[0] is node for user in node.users):
            found.append(slot.name)
            if slot.kind == "rate":
                raise UnsupportedProgram(INSIDE)
    return found


@contextlib.contextmanager
def _conversions_as_they_are() -> Iterator[None]:
    """Where ``module.to(dtype)`` in a forward pass changes nothing, it does nothing.

    Torch would swap parameters for equal ones, which traced ones cannot be.
    """
    convert: Callable[..., nn.Module] = nn.Module._apply

    def apply(module: nn.Module, function: Callable[..., Any], recurse: bool = True) -> nn.Module:
        parameters = list(module.parameters(recurse))
        changed = [each for each in parameters if function(each) is not each]
        if not changed and all(function(each) is each for each in module.buffers(recurse)):
            return module
        if any(getattr(each, STANDS_FOR, False) for each in changed):
            raise UnsupportedProgram(
                f"the function converts a module that it closes over, {type(module).__name__}, to "
                "another type or device. Convert it before, or the tensors that it is called with."
            )
        return convert(module, function, recurse)

    nn.Module._apply = apply  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.Module._apply = convert  # type: ignore[method-assign]


@contextlib.contextmanager
def _without_onednn() -> Iterator[None]:
    """Where the LSTM of oneDNN, one operator of which nothing is known, becomes those of ATen."""
    before = torch.backends.mkldnn.set_flags(False)[0]
    try:
        yield
    finally:
        torch.backends.mkldnn.set_flags(before)


class _Run:
    """Runs the function with traced tensors in place of the caller's."""

    def __init__(
        self,
        closed: Closed,
        slots: list[Slot],
        function: Callable[..., Any],
        varying: Collection[str],
        outside: Outside,
        met: dict[str, Place],
        left: Left,
        watch: Watch,
    ) -> None:
        self.left, self.watch = left, watch
        self.closed, self.slots, self.function = closed, slots, function
        self.varying, self.outside, self.met = varying, outside, met
        self.guards: Guards = []
        self.known = KnownValues(slots, closed.buffers, self.guards)
        self.results: Any = None
        self.gradients = Gradients()

    def __call__(self, tensors: Sequence[torch.Tensor], inputs: Sequence[Any]) -> Any:
        """Swap, run, swap back."""
        traced = dict(zip((slot.name for slot in self.slots), tensors, strict=True))
        with contextlib.ExitStack() as stack:
            swapped = stack.enter_context(swapped_modules(self.closed, traced, self.left))
            rates = stack.enter_context(
                swapped_optimizers(self.closed, traced, swapped, self.varying, self.guards)
            )
            stack.enter_context(swapped_scalers(self.closed, traced))
            stack.enter_context(self._asking_for_more())
            standing = stack.enter_context(self.outside.standing_in(swapped, self.met))
            unreached = Unreached(self.closed, traced, swapped)
            places = Places(self.closed, self.guards, standing, self.known, unreached)
            stack.enter_context(places)
            stack.enter_context(_without_onednn())
            with self.watch.running(self.guards):
                result = self.function(*inputs)
            self._check_rates(rates)
            if unreached.lacks_places:
                self.closed.leaves_gradients = True
                raise _MoreTensors("")
            self.gradients = unreached.settled()
            self._keep_buffers(traced)
        self.results, tensors = placed(result)
        return tensors

    @contextlib.contextmanager
    def _asking_for_more(self) -> Iterator[None]:
        """Whatever happens, the trace is of no use where tensors were met that nobody knew."""
        try:
            yield
        except Exception as error:
            if self.met:
                raise _MoreTensors("") from error
            raise
        if self.met:
            raise _MoreTensors("")

    def _check_rates(self, rates: Sequence[tuple[dict[str, Any], Any]]) -> None:
        for group, rate in rates:
            if group["lr"] is not rate:
                raise UnsupportedProgram(INSIDE)

    def _keep_buffers(self, traced: dict[str, torch.Tensor]) -> None:
        """Buffers that the function replaced instead of writing into them."""
        for (owner, key), name in self.closed.places.items():
            now = owner._buffers.get(key)
            if now is not None and now is not traced[name]:
                traced[name].copy_(now)


def _slots(closed: Closed, varying: Collection[str]) -> Iterator[Slot]:
    """All live tensors, with how to get them at each call."""
    for name, tensor in {**closed.parameters, **closed.buffers}.items():
        yield Slot(name, _live(closed, name, tensor))
    for name, tensor in closed.parameters.items():
        makes = tensor.requires_grad and (closed.optimizers or closed.leaves_gradients)
        if makes or tensor.grad is not None:
            yield Slot(f"{name}.grad", _gradient(tensor), "gradient", _grad_of(tensor))
    yield from optimizer_slots(closed, varying)
    yield from scaler_slots(closed)


def _live(closed: Closed, name: str, tensor: torch.Tensor) -> Callable[[], torch.Tensor]:
    if name in closed.outside:
        return closed.outside[name]
    found = closed.owners.get(name)
    if found is None:
        return lambda: tensor
    owner, key = found  # the key may be a name that modules have for something else
    tables: tuple[dict[str, Any], ...] = (owner._parameters, owner._buffers)

    def live() -> torch.Tensor:
        now: torch.Tensor = next(table[key] for table in tables if key in table)
        return now

    return live


def _grad_of(tensor: torch.Tensor) -> Callable[[], torch.Tensor | None]:
    return lambda: tensor.grad


def _gradient(tensor: torch.Tensor) -> Callable[[], torch.Tensor]:
    """The gradient as it is before a call: zeros where there is none."""
    return lambda: torch.zeros_like(tensor) if tensor.grad is None else tensor.grad


@contextlib.contextmanager
def _surroundings() -> Iterator[None]:
    """Settings of torch under which all is traced to operators that are right."""
    fast = torch.backends.mha.get_fastpath_enabled()
    compiling = torch.compiler._is_compiling_flag
    checked: bool = Distribution._validate_args
    torch.backends.mha.set_fastpath_enabled(False)
    torch.compiler._is_compiling_flag = True
    Distribution.set_default_validate_args(False)  # which reads values
    try:
        with (
            _conversions_as_they_are(),
            sdpa_kernel(SDPBackend.MATH),  # of the others only the forward is decomposed
            torch.compiler.set_stance("force_eager"),  # what torch compiles runs as it is written
            torch.backends.cudnn.flags(enabled=False),  # of which nothing is known
            warnings.catch_warnings(),
        ):
            warnings.filterwarnings("ignore", r"Using `torch\.compile\(module\)` when there")
            yield
    finally:
        Distribution.set_default_validate_args(checked)
        torch.backends.mha.set_fastpath_enabled(fast)
        torch.compiler._is_compiling_flag = compiling
