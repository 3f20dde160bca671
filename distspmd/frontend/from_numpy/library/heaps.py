"""Heaps in lists, with the comparisons and the order of elements that Python's ``heapq`` has."""

from __future__ import annotations

from typing import Any


def heappush(heap: list[Any], item: object) -> None:
    """Add an element."""
    heap.append(item)
    _towards_root(heap, 0, len(heap) - 1)


def heappop(heap: list[Any]) -> Any:
    """Take the least element."""
    found = heap.pop()
    if len(heap) > 0:
        last = found
        found = heap[0]
        heap[0] = last
        _towards_leaves(heap, 0)
    return found


def heapreplace(heap: list[Any], item: object) -> Any:
    """Take the least element, and add another one."""
    found = heap[0]
    heap[0] = item
    _towards_leaves(heap, 0)
    return found


def heappushpop(heap: list[Any], item: object) -> Any:
    """Add an element, and take the least one."""
    found = item
    if len(heap) > 0 and heap[0] < item:
        found = heap[0]
        heap[0] = item
        _towards_leaves(heap, 0)
    return found


def heapify(heap: list[Any]) -> None:
    """Make a heap of a list."""
    for place in range(len(heap) // 2 - 1, -1, -1):
        _towards_leaves(heap, place)


def _towards_root(heap: list[Any], root: int, place: int) -> None:
    """Move what is at a place up to where it is not less than what is above."""
    item = heap[place]
    while place > root and item < heap[(place - 1) // 2]:
        above = (place - 1) // 2
        heap[place] = heap[above]
        place = above
    heap[place] = item


def _towards_leaves(heap: list[Any], place: int) -> None:
    """Let the lesser child take a place down to the leaves; what was there goes up from its leaf.

    So ``heapq`` does it: it costs fewer comparisons than to stop on the way down.
    """
    end = len(heap)
    root = place
    item = heap[place]
    child = 2 * place + 1
    while child < end:
        if child + 1 < end and not heap[child] < heap[child + 1]:
            child = child + 1
        heap[place] = heap[child]
        place = child
        child = 2 * place + 1
    heap[place] = item
    _towards_root(heap, root, place)
