"""Redistributions of a driver: arrays of this process are whole, and all others are handles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from distspmd.driver import served
from distspmd.driver.handle import Handle
from distspmd.errors import ArgumentError, describe
from distspmd.layouts.layout import Layout

if TYPE_CHECKING:
    from distspmd.driver.ranks import Ranks


def redistribute(
    ranks: Ranks,
    tile: Any,
    source: Layout,
    target: Layout,
    out: Any,
    options: tuple[Any, ...],
) -> Any:
    """Bring an array from one layout to another.

    Returns:
        ``out``; or an array where the target has all of it on rank 0, and else a handle.

    Raises:
        ArgumentError: the array does not lie as ``source`` says, or is no array.
    """
    for layout in (source, target):
        if not isinstance(layout, Layout):
            raise ArgumentError(
                f"{layout!r} is a {type(layout).__name__}; a layout is a distspmd.layouts.Layout."
            )
    array = _checked(tile, source)
    is_here = target == Layout.root(target.extents)
    _check_out(out, target, array, is_here)
    with ranks.lock:
        lies = array if isinstance(array, Handle) else ranks.place(array, source)
        found = out if isinstance(out, Handle) else _new(ranks, lies, target)
        given = lies.number, source, found.number, target, lies.dtype
        ranks.together(served.move, *given, options[1:])
        if not is_here:
            return found
        whole = ranks.memory_for(target.extents, lies.dtype) if out is None else out
        ranks.fetch(found, whole)
        return whole


def _new(ranks: Ranks, like: Handle, target: Layout) -> Handle:
    return Handle(ranks, ranks.new_number(), target.extents, like.dtype, target)


def _checked(tile: Any, source: Layout) -> Any:
    if isinstance(tile, Handle):
        if tile.layout != source:
            raise ArgumentError(
                f"redistribute: the array lies on the ranks as {tile.layout}, but its source is "
                f"said to be {source}. Pass handle.layout."
            )
        return tile
    if not isinstance(tile, np.ndarray):
        raise ArgumentError(
            f"redistribute: an array or a handle is needed, but {describe(tile)} was given."
        )
    if source != Layout.root(source.extents) or tile.shape != source.extents:
        raise ArgumentError(
            f"redistribute: the array lies in this process, as a whole of {list(tile.shape)}, but "
            f"its source is said to be {source}. Pass Layout.root({tile.shape})."
        )
    return tile


def _check_out(out: Any, target: Layout, array: Any, is_here: bool) -> None:
    if out is None:
        return
    if isinstance(out, Handle):
        if out.layout != target or out.dtype != array.dtype:
            raise ArgumentError(
                f"redistribute: out lies on the ranks as {out.dtype} in {out.layout}, but the "
                f"target is {array.dtype} in {target}."
            )
    elif not is_here or not isinstance(out, np.ndarray) or out.shape != target.extents:
        raise ArgumentError(
            f"redistribute: out is {describe(out)}, but the target is {target}. Pass a handle in "
            "that layout, or leave it out."
        )
