"""What a mask of the run chooses: ``x[mask]``, whose length data decide.

A program has no such length. The rows stay where they are, beside the mask that says which of them
are chosen: the length has a bound, which is that of the mask, and a count. Others are replaced by
the first that is chosen, so that nothing is computed of them that is not computed of a chosen one;
sums leave them out, and gradients of them are zero. So rows need not move between ranks either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from distspmd.errors import UnsupportedProgram

Run = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
"""Runs a function of torch while it is traced."""


class Chosen:
    """Rows of a tensor that a mask chooses; to a function of torch a tensor of an unknown length.

    Args:
        rows: all of them, along the first dimension.
        valid: which of them are there.
        mask: what the caller has indexed with.
        run: runs functions of torch.
    """

    by = "a mask"
    """What has chosen."""

    def __init__(self, rows: Tensor, valid: Tensor, mask: Any, run: Run) -> None:
        self.rows, self.valid, self.mask, self.run = rows, valid, mask, run

    @classmethod
    def of(cls, x: Tensor, mask: Tensor, run: Run) -> Chosen:
        """``x[mask]``."""
        if x.shape[: mask.ndim] != mask.shape:
            raise IndexError(
                f"a mask of the shape {list(mask.shape)} for a tensor of {list(x.shape)}"
            )
        rows = x.reshape(mask.numel(), *x.shape[mask.ndim :])
        valid = mask.reshape(-1)
        return cls(_filled(rows, valid), valid, mask, run)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _first((args, kwargs)).run(func, args, kwargs or {})

    def __getattr__(self, name: str) -> Any:
        if name in ("dtype", "device", "ndim", "requires_grad"):
            return getattr(self.rows, name)
        method = getattr(Tensor, name, None)
        if name.startswith("_") or not hasattr(Tensor, name):
            raise AttributeError(name)
        if not callable(method):
            raise _refused(name)
        return lambda *args, **kwargs: self.run(method, (self, *args), kwargs)

    def dim(self) -> int:
        """Number of dimensions."""
        return self.rows.ndim

    def __len__(self) -> int:
        raise _refused("len")

    def __bool__(self) -> bool:
        raise _refused("bool")

    def __iter__(self) -> Any:
        raise _refused("a loop over it")

    @property
    def shape(self) -> Any:
        """Refused: a size of it is no number."""
        raise _refused("shape")

    def __repr__(self) -> str:
        rows = list(self.rows.shape)
        return f"what {self.by} chooses of {rows}, whose length depends on the values of tensors"

    def __getitem__(self, index: Any) -> Any:
        return self.run(Tensor.__getitem__, (self, index), {})

    __hash__ = object.__hash__


def _operators() -> None:
    def forwards(name: str) -> Callable[..., Any]:
        method = getattr(Tensor, f"__{name}__")
        return lambda self, *others: self.run(method, (self, *others), {})

    names = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
    for name in (*names, "and", "or", "xor", *(f"r{name}" for name in names)):
        setattr(Chosen, f"__{name}__", forwards(name))
    for name in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "invert", "abs", "matmul"):
        setattr(Chosen, f"__{name}__", forwards(name))
    for name in ("add", "sub", "mul", "truediv"):  # a new one: that of an index is a copy
        setattr(Chosen, f"__i{name}__", getattr(Chosen, f"__{name}__"))


_operators()


def takes(args: Any, kwargs: Any) -> bool:
    """Whether a function takes what a mask chooses."""
    return any(isinstance(leaf, Chosen) for leaf in pytree.tree_leaves((args, kwargs)))


def chooses(name: str, args: Sequence[Any]) -> bool:
    """Whether a function gives what a mask chooses."""
    if name == "__getitem__":
        first = args[1][0] if isinstance(args[1], tuple) and args[1] else args[1]
        return _is_mask(first)
    return name == "masked_select" or (name in _PLACES and len(args) == 1)


def called(func: Callable[..., Any], args: Any, kwargs: Any, run: Run) -> Any:
    """The result of such a function.

    Raises:
        UnsupportedProgram: it is not covered.
    """
    name = getattr(func, "__name__", "").strip("_")
    name = name.removesuffix("_") if isinstance(args[0], Chosen) else name
    for names, function in _KINDS:
        if name in names:
            found = function(name, func, args, kwargs, run)
            if found is not NotImplemented:
                return found
    raise _refused(name)


def _refused(name: str) -> UnsupportedProgram:
    return UnsupportedProgram(
        f"{name}: the length of what a mask chooses (x[mask], torch.where(mask), nonzero) depends "
        "on the values of tensors, and this function is not covered for such a length. Pointwise "
        "functions, reductions and losses are. Write it without: with a mask of the whole shape, "
        "and torch.where."
    )


def _is_mask(index: Any) -> bool:
    return isinstance(index, Tensor) and index.dtype == torch.bool and index.ndim > 0


def _beside(valid: Tensor, rows: Tensor) -> Tensor:
    """A mask of rows as one of their elements."""
    return valid.reshape(-1, *(1 for _ in rows.shape[1:]))


def _filled(rows: Tensor, valid: Tensor) -> Tensor:
    """Rows with the first valid one in place of those that are not."""
    if not rows.numel():
        return rows
    first = rows.detach().index_select(0, valid.to(torch.int32).argmax().reshape(1))
    return torch.where(_beside(valid, rows), rows, first)


def _only(chosen: Chosen, nothing: Any) -> Tensor:
    """Rows with a number in place of those that are not there."""
    return torch.where(_beside(chosen.valid, chosen.rows), chosen.rows, nothing)


def _first(args: Any) -> Chosen:
    found = next((leaf for leaf in pytree.tree_leaves(args) if isinstance(leaf, Chosen)), None)
    assert found is not None
    return found


def _plain(leaf: Any, like: Chosen) -> Any:
    """An operand as all rows; refused if it has no such rows."""
    if isinstance(leaf, Chosen):
        if leaf.valid is not like.valid and leaf.mask is not like.mask:
            raise UnsupportedProgram(
                "what two masks choose is computed with: whether they choose as much depends on "
                "the values of tensors. Choose both with one variable: mask = ...; a[mask], b[mask]"
            )
        return leaf.rows
    is_long = isinstance(leaf, Tensor) and leaf.ndim >= max(1, like.rows.ndim)
    if is_long and (leaf.ndim > like.rows.ndim or leaf.shape[0] != 1):
        raise _refused(f"a tensor of {list(leaf.shape)} beside it")
    return leaf


def _on_rows(func: Callable[..., Any], args: Any, kwargs: Any, run: Run) -> Any:
    """A function that makes of each row another one."""
    like = _first((args, kwargs))
    given, named = pytree.tree_map(lambda leaf: _plain(leaf, like), (args, kwargs))
    found = run(func, given, named)

    def made(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor) or not leaf.ndim or len(leaf) != len(like.rows):
            raise _refused(getattr(func, "__name__", "it"))
        return Chosen(leaf, like.valid, like.mask, run)

    if isinstance(found, tuple):
        several = [made(leaf) for leaf in found]
        return tuple(several) if type(found) is tuple else type(found)(several)
    return made(found)


# -- kinds of functions -------------------------------------------------------------------------


def _pointwise(name: str, func: Any, args: Any, kwargs: Any, run: Run) -> Any:
    return _on_rows(func, args, kwargs, run)


def _along(name: str, func: Any, args: Any, kwargs: Any, run: Run) -> Any:
    """Functions along dimensions of a row."""
    if name in _DIMS:
        dim = kwargs.get("dim", _DIMS[name] if len(args) <= 2 else None)
    else:
        dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
    dims = dim if isinstance(dim, tuple | list) else (dim,)
    if not isinstance(args[0], Chosen) or any(type(d) is not int for d in dims):
        return NotImplemented
    if any(d % args[0].rows.ndim == 0 for d in dims):
        return NotImplemented
    return _on_rows(func, args, kwargs, run)


def _matrix(name: str, func: Any, args: Any, kwargs: Any, run: Run) -> Any:
    """Each row times a matrix."""
    x, *others = args
    if not isinstance(x, Chosen) or (x.rows.ndim < 2 and name != "embedding"):
        return NotImplemented
    if any(isinstance(other, Chosen) for other in others):
        return NotImplemented
    return Chosen(run(func, (x.rows, *others), kwargs), x.valid, x.mask, run)


def _reduced(name: str, func: Any, args: Any, kwargs: Any, run: Run) -> Any:
    """Sums, means and extremes of all rows that are there."""
    x = args[0]
    dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
    if not isinstance(x, Chosen) or len(args) > 2 or kwargs.keys() - {"dim", "dtype"}:
        return NotImplemented
    if dim not in (None, 0, (0,), [0]) or (dim is not None and name not in ("sum", "mean")):
        return NotImplemented
    each = math.prod(x.rows.shape[1:]) if dim is None else 1
    given = {key: value for key, value in kwargs.items() if key == "dtype"}
    if dim is not None:
        given["dim"] = 0
    if name == "mean":
        total = run(Tensor.sum, (_only(x, 0),), given)
        return total / (x.valid.sum() * each).to(total.dtype)
    if name == "numel":
        return x.valid.sum() * each
    kind = x.rows.dtype
    if name in ("max", "amax", "min", "amin"):
        is_max = "max" in name
        infinite = -math.inf if is_max else math.inf
        limits = torch.finfo(kind) if kind.is_floating_point else torch.iinfo(kind)
        end = limits.min if is_max else limits.max
        return run(func, (_only(x, infinite if kind.is_floating_point else end),), given)
    nothing = {"sum": 0, "any": False, "all": True, "prod": 1, "count_nonzero": 0, "norm": 0}[name]
    return run(func, (_only(x, nothing),), given)


def _loss(name: str, func: Any, args: Any, kwargs: Any, run: Run) -> Any:
    """A loss of each row, and its sum or mean over those that are there."""
    given = {k: x for k, x in kwargs.items() if k not in ("size_average", "reduce")}
    reduction = given.get("reduction", "mean")
    if kwargs.get("size_average") is not None or kwargs.get("reduce") is not None:
        return NotImplemented
    if name in ("cross_entropy", "nll_loss"):
        x, target, *others = args
        if not (isinstance(x, Chosen) and isinstance(target, Chosen)) or target.rows.ndim != 1:
            return NotImplemented
        ignored = given.get("ignore_index", -100)
        if reduction == "none" or target.dtype.is_floating_point:
            return _on_rows(func, args, given, run)
        rows = _plain(x, target)
        return run(func, (rows, _only(target, ignored), *others), given)
    each = _on_rows(func, args, {**given, "reduction": "none"}, run)
    if reduction == "batchmean":
        return each.sum() / each.valid.sum().to(each.dtype)
    return each if reduction == "none" else getattr(each, reduction)()


def _item(name: str, func: Any, args: Any, kwargs: Any, run: Run) -> Any:
    """Elements: a mask chooses rows, numbers that were chosen name them, and parts of rows."""
    x, index = args
    index = index if isinstance(index, tuple) else (index,)
    first, *rest = index
    if isinstance(x, Chosen):
        if isinstance(first, Chosen) and first.dtype == torch.bool and not rest:
            valid = x.valid & _plain(first, x)
            return Chosen(_filled(x.rows, valid), valid, first, run)
        if first is Ellipsis or first == slice(None):
            return _on_rows(func, (x, index), kwargs, run)
        return NotImplemented
    if _is_mask(first):
        chosen = Chosen.of(x, first, run)
        return run(func, (chosen, (slice(None), *rest)), {}) if rest else chosen
    places = [each for each in index if isinstance(each, Chosen)]
    if not places or any(each.rows.ndim != 1 for each in places):
        return NotImplemented
    named = index[: len(places)]
    if any(not isinstance(each, Chosen) or each.dtype == torch.bool for each in named):
        return NotImplemented
    if any(isinstance(each, Tensor) for each in index):
        return NotImplemented
    rows = tuple(_plain(each, places[0]) for each in index)
    return Chosen(run(func, (x, rows), {}), places[0].valid, places[0].mask, run)


def _replaced(name: str, func: Any, args: Any, kwargs: Any, run: Run) -> Any:
    """``x[mask] = chosen``, where the mask is what has chosen."""
    x, mask, value = args
    if isinstance(x, Chosen) or not isinstance(value, Chosen) or mask is not value.mask:
        return NotImplemented
    rest = x.shape[mask.ndim :]
    rows = value.rows.expand(-1, *rest) if rest else value.rows
    here = mask.reshape(*mask.shape, *(1 for _ in rest))
    x.copy_(torch.where(here, rows.reshape(x.shape).to(x.dtype), x))
    return None


def _added(name: str, func: Any, args: Any, kwargs: Any, run: Run) -> Any:
    """Rows that are added at places; those that are not there add nothing."""
    x, dim, places, rows, *others = args
    if isinstance(x, Chosen) or not isinstance(places, Chosen) or not isinstance(rows, Chosen):
        return NotImplemented
    if dim % x.ndim != 0 or others:
        return NotImplemented
    _plain(rows, places)
    return run(func, (x, dim, places.rows, _only(rows, 0)), kwargs)


def _places(name: str, func: Any, args: Any, kwargs: Any, run: Run) -> Any:
    """The indices of elements that are not zero."""
    (x,) = args
    if isinstance(x, Chosen) or not x.ndim or kwargs.keys() - {"as_tuple"}:
        return NotImplemented
    mask = x if x.dtype == torch.bool else x != 0
    counted = [torch.arange(n) for n in mask.shape]
    grids = [each.expand(mask.shape) for each in torch.meshgrid(*counted, indexing="ij")]
    if name == "where" or kwargs.get("as_tuple"):
        first = Chosen.of(grids[0], mask, run)
        others = [Chosen.of(grid, mask, run) for grid in grids[1:]]
        return (first, *others)
    found = Chosen.of(torch.stack(grids, -1), mask, run)
    found.by = name
    return found


def _selected(name: str, func: Any, args: Any, kwargs: Any, run: Run) -> Any:
    x, mask = torch.broadcast_tensors(*args)
    return Chosen.of(x, mask, run)


def _shaped(name: str, func: Any, args: Any, kwargs: Any, run: Run) -> Any:
    """Other dimensions of a row."""
    x, *given = args
    if not isinstance(x, Chosen):
        return NotImplemented
    rows, rank = x.rows, x.rows.ndim
    if name in ("view", "reshape", "flatten"):
        shape = given[0] if given and isinstance(given[0], tuple | list) else tuple(given)
        if name == "flatten" and shape in ((1,), (1, -1)):
            shape = (-1, math.prod(rows.shape[1:]))
        if not shape or shape[0] != -1 or math.prod(shape[1:]) != math.prod(rows.shape[1:]):
            return NotImplemented
        return Chosen(rows.reshape(len(rows), *shape[1:]), x.valid, x.mask, run)
    (dim,) = given if given else (kwargs.get("dim", 0),)
    if not isinstance(dim, int) or dim % (rank + (name == "unsqueeze")) == 0:
        return NotImplemented
    return Chosen(run(func, (rows, dim), {}), x.valid, x.mask, run)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PLACES = ("nonzero", "argwhere", "where")
_POINTWISE = _names(
    """add sub mul div true_divide floor_divide remainder fmod pow neg abs exp exp2 expm1 log log2
    log10 log1p sqrt rsqrt square reciprocal sin cos tan tanh sinh cosh asin acos atan atan2 sigmoid
    relu relu6 gelu silu mish elu selu celu leaky_relu softplus softsign hardtanh hardsigmoid
    hardswish logsigmoid erf erfc sign floor ceil round trunc clamp clamp_min clamp_max minimum
    maximum lerp where masked_fill eq ne lt le gt ge isnan isinf isfinite logical_and logical_or
    logical_not logical_xor bitwise_and bitwise_or bitwise_not invert and or xor radd rsub rmul
    rtruediv rdiv rpow truediv floordiv mod to float double half bfloat16 long int bool type_as
    detach clone contiguous zeros_like ones_like full_like dropout addcmul addcdiv one_hot
    nan_to_num xlogy"""
)
_LOSSES = _names(
    """cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy
    binary_cross_entropy_with_logits kl_div poisson_nll_loss soft_margin_loss"""
)
_ALONG = _names(
    """sum mean amax amin max min argmax argmin softmax log_softmax logsumexp std var norm any all
    prod cumsum normalize cosine_similarity"""
)
_DIMS = {"norm": None, "normalize": 1, "cosine_similarity": 1}
"""Functions whose second argument is another one, with the dimension that they take."""
_REDUCED = _names("sum mean max min amax amin any all prod count_nonzero norm numel")
_KINDS: Sequence[tuple[Any, Callable[..., Any]]] = (
    (("getitem",), _item),
    (("setitem",), _replaced),
    (("masked_select",), _selected),
    (("nonzero", "argwhere"), _places),
    (("where",), lambda *given: _places(*given) if len(given[2]) == 1 else NotImplemented),
    (_POINTWISE, _pointwise),
    (_LOSSES, _loss),
    (_REDUCED, _reduced),
    (_ALONG, _along),
    (("linear", "matmul", "mm", "embedding"), _matrix),
    (("view", "reshape", "flatten", "unsqueeze", "squeeze"), _shaped),
    (("index_add",), _added),
)
