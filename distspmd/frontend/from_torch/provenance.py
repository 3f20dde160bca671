"""The place of an operator in the user's program: the path of its module, and the phase.

While it is active, each traced operator carries both; operators of a backward pass carry the path
of the operator whose derivative they compute.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import nn
from torch.fx import traceback as fx_traceback
from torch.nn.modules import module as hooks
from torch.optim import optimizer as optimizer_hooks
from torch.overrides import TorchFunctionMode

from distspmd.errors import UnsupportedProgram
from distspmd.frontend.from_torch import chosen_rows
from distspmd.frontend.from_torch.closures import Closed
from distspmd.frontend.from_torch.known_values import SHAPES, KnownValues
from distspmd.frontend.from_torch.lists_of_tensors import PREFIX, for_each
from distspmd.frontend.from_torch.losses import LOSSES
from distspmd.frontend.from_torch.moving import users_line
from distspmd.frontend.from_torch.outside_tensors import Standing
from distspmd.frontend.from_torch.resampling import grid_sample
from distspmd.frontend.from_torch.run_time_numbers import Guards, Number, ReadNumber
from distspmd.frontend.from_torch.unreached import Unreached

_READS = ("item", "tolist", "numpy", "__bool__", "__float__", "__int__", "__index__")
_SET_DATA = torch.Tensor.data.__set__  # type: ignore[attr-defined]
_GRADIENT: Any = torch.Tensor.grad


class Places(TorchFunctionMode):
    """Keeps the current place in the metadata of what is traced; refuses reads of values."""

    def __init__(
        self,
        closed: Closed,
        guards: Guards,
        standing: Standing,
        known: KnownValues,
        unreached: Unreached,
    ) -> None:
        super().__init__()
        self.guards, self.standing, self.known = guards, standing, known
        self.unreached = unreached
        self.paths = {
            id(module): ".".join(filter(None, [closed.prefix(root), path]))
            for root, top in closed.modules.items()
            for path, module in top.named_modules()
        }
        self.stack: list[str] = []
        self.phase = "forward"
        self.hooks = contextlib.ExitStack()

    def __enter__(self) -> Places:
        for handle in (
            hooks.register_module_forward_pre_hook(self._enter_module),
            hooks.register_module_forward_hook(self._leave_module, always_call=True),
            optimizer_hooks.register_optimizer_step_pre_hook(self._enter_update),
            optimizer_hooks.register_optimizer_step_post_hook(self._leave_update),
        ):
            self.hooks.callback(handle.remove)
        self._place()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self.hooks.close()
        fx_traceback.current_meta.pop("custom", None)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run a function of torch, and note the place of the derivative."""
        name = getattr(func, "__name__", "")
        args, kwargs = self.standing.replaced(args), self.standing.replaced(kwargs or {})
        if name == "item" and self._inside_update():
            return Number(args[0].reshape(()).clone(), None, "item()", self.guards)
        if name in ("__rpow__", "pow") and self._inside_update():
            args = _in_double(args)
        if name.startswith(PREFIX):
            return for_each(func, args, kwargs)
        if any(isinstance(each, Number) for each in (*args, *kwargs.values())):
            return Number.__torch_function__(func, types, args, kwargs)
        if name in _READS and not self._inside_update():
            return self._read(func, args, kwargs)
        if name == "backward" and args and isinstance(args[0], torch.Tensor):
            return self._backward(func, args, kwargs)
        if name in ("__get__", "__set__"):
            return self._attribute(func, args)
        if name == "grid_sample" and args[0].ndim == 4:
            return grid_sample(*args, **kwargs)
        if name in LOSSES:
            return LOSSES[name](*args, **kwargs)
        return self._on_tensors(func, name, args, kwargs)

    def _attribute(self, func: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Read or set an attribute of a tensor."""
        if func == _SET_DATA:
            return _set_data(*args)
        if func == _GRADIENT.__set__:
            self.unreached.is_set(args[0])
        elif func == _GRADIENT.__get__:
            clears = sys._getframe(2).f_code.co_name == "zero_grad"
            if self.unreached.hides(args[0], clears, self._inside_update()):
                return None
        return self._on_tensors(func, func.__name__, args, {})

    def _on_tensors(
        self, func: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run a function; of what a mask chooses, all rows stand for those of unknown number."""
        if isinstance(kwargs.get("generator"), torch.Generator):
            raise UnsupportedProgram(
                f"the function draws from a torch.Generator ({name}). Random numbers of a program "
                "are functions of torch.initial_seed() and of the number of the call: leave "
                "generator= out."
            )
        args, kwargs = self.known.arguments(name, args, kwargs)
        chooses = chosen_rows.chooses(name, args) and not self._knows(name, args)
        if chooses or chosen_rows.takes(args, kwargs):
            return chosen_rows.called(func, args, kwargs, self._again)
        return self._run(func, name, args, kwargs)

    def _again(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> Any:
        return self.__torch_function__(func, (), args, kwargs)

    def _knows(self, name: str, args: tuple[Any, ...]) -> bool:
        """Whether elements are chosen by values that are known; those of an index are replaced."""
        return name != "__getitem__" and all(self.known.of(each) is not None for each in args)

    def _run(
        self, func: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        shaped = name in SHAPES or (name == "where" and len(args) == 1)
        result = self.known.called(func, args, kwargs) if shaped else None
        if name == "bincount" and result is None and len(args) == 1 and [*kwargs] == ["minlength"]:
            result = self.known.counted(args[0], kwargs["minlength"])
        if result is None:
            with _line_of(func):
                result = func(*args, **kwargs)
        if isinstance(result, torch.Tensor) and result.grad_fn is not None:
            metadata: Any = result.grad_fn.metadata
            metadata.setdefault("distspmd", self.path)
        return result

    def _read(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The value of a tensor, where it is known; else, of ``item``, what stands for it."""
        value = self.known.of(args[0])
        if value is not None:
            return func(value, *args[1:], **kwargs)
        inner = torch._is_functional_tensor(args[0])  # that of tolist, which is no number
        if getattr(func, "__name__", "") == "item" and args[0].numel() == 1 and not inner:
            where = f"item() in {repr(self.path) if self.path else 'the step itself'}"
            read = args[0].detach().reshape(()).clone()
            read = read.double() if read.is_floating_point() else read
            return ReadNumber(read, None, where, self.guards)
        raise UnsupportedProgram(
            f"the function reads the value of a tensor ({getattr(func, '__name__', '')}), in the "
            f"module {self.path or 'of the step itself'!r}. A program cannot stop for that: return "
            "the tensor, and read it after the call."
        )

    @property
    def path(self) -> str:
        """Path of the module that runs."""
        return self.stack[-1] if self.stack else ""

    def _inside_update(self) -> bool:
        return self.phase == "update"

    def _place(self, path: str | None = None) -> None:
        place = {"path": self.path if path is None else path, "phase": self.phase}
        fx_traceback.current_meta["custom"] = place

    def _enter_module(self, module: nn.Module, arguments: Any) -> None:
        self.stack.append(self.paths.get(id(module), self.path))
        self._place()

    def _leave_module(self, module: nn.Module, arguments: Any, result: Any) -> None:
        self.stack.pop()
        self._place()

    def _enter_update(self, *_: Any) -> None:
        self.phase = "update"
        self._place("")

    def _leave_update(self, *_: Any) -> None:
        self.phase = "forward"
        self._place()

    def _backward(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> Any:
        self.phase = "backward"
        self._place()
        handles = []
        for node, path in _derivatives(args[0].grad_fn):
            handles.append(node.register_prehook(lambda _, path=path: self._place(path)))
        try:
            return func(*args, **kwargs)
        finally:
            for handle in handles:
                handle.remove()
            self.phase = "forward"
            self._place()


@contextlib.contextmanager
def _line_of(func: Callable[..., Any]) -> Iterator[None]:
    """Keeps the user's line, too, of an operator that is called by its own name."""
    place = fx_traceback.current_meta.get("custom")
    if place is None or not isinstance(func, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        yield
        return
    fx_traceback.current_meta["custom"] = {**place, "line": users_line()}
    try:
        yield
    finally:
        fx_traceback.current_meta["custom"] = place


def _set_data(tensor: torch.Tensor, value: torch.Tensor) -> None:
    """``tensor.data = value``: the values go into the memory that is there."""
    if (tensor.shape, tensor.dtype) != (value.shape, value.dtype):
        raise UnsupportedProgram(
            f"the function gives a tensor of the shape {list(tensor.shape)} and the type "
            f"{tensor.dtype} data of the shape {list(value.shape)} and the type {value.dtype}. "
            "Change shapes and types outside of the function."
        )
    tensor.data.copy_(value)


def _in_double(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """A number of steps as torch takes it for a power, which Python computes in double precision.

    Of ``1 - 0.999 ** step``, single precision would leave the last 4 digits to chance.
    """
    return tuple(
        each.double()
        if isinstance(each, torch.Tensor) and each.ndim == 0 and each.dtype == torch.float32
        else each
        for each in args
    )


def _derivatives(root: Any) -> list[tuple[Any, str]]:
    """All nodes of a graph of derivatives with their paths: their own, else the later one's."""
    found: dict[Any, str] = {}
    waiting = [(root, "")]
    while waiting:
        node, path = waiting.pop()
        if node is None or node in found:
            continue
        path = node.metadata.get("distspmd", path)
        found[node] = path
        waiting += [(before, path) for before, _ in node.next_functions]
    return list(found.items())
