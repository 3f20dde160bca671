"""Calls of Python's libraries that ask back: a solver gets values of a function of the program.

The library runs in a thread of its own. Where it calls a function, the program gets the number of
this function and its arguments as one vector of numbers, and goes on; it comes back with the value.
Conversations end in the order in which they lie in each other. All ranks have them alike.
"""

from __future__ import annotations

import inspect
import queue
import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from distspmd.runtime.host.library_calls import Session, write_answer

ENDED = -1
"""What stands for the number of a function where the library has none left to ask for."""
_TALKS: list[_Conversation] = []


class _Conversation:
    """A call of a library, which waits for values or has ended.

    Attributes:
        result: what the library gave.
    """

    def __init__(self, question: Mapping[str, Any], inputs: Sequence[Any]) -> None:
        self.question = question
        self.result: Any = None
        self._inputs = [np.array(array)[()] for array in inputs]
        self._first = {int(n): self._inputs[place] for n, place in question["first"].items()}
        self._asked: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._values: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                session = Session(self._inputs, self._call)
                self._asked.put((ENDED, session.value(self.question["ask"])))
        except Exception as problem:
            self._asked.put((ENDED, problem))

    def _call(self, number: int, *given: Any) -> Any:
        kind = np.dtype(self.question["dtype"])
        place = np.concatenate([np.ravel(np.asarray(each, dtype=kind)) for each in given])
        value = self._first.pop(number, None)
        if value is None or not np.array_equal(place, self._inputs[self.question["start"]]):
            self._asked.put((number, place))
            value = self._values.get()
        shape = self.question["values"][number]
        return np.reshape(value, shape) if shape else np.reshape(value, ()).item()

    def go_on(self, outputs: Sequence[Any], value: Any = None) -> None:
        """Give the library a value, and the program what it is asked for next."""
        if value is not None:
            self._values.put(np.array(value))
        number, what = self._asked.get()
        outputs[0][...] = number
        if number == ENDED:
            self.result = what
            if isinstance(what, Exception):
                raise what
        elif what.size < outputs[1].size and what.size:
            outputs[1][: what.size] = what
        elif what.shape != outputs[1].shape:
            raise ValueError(
                f"it asks for {what.size} numbers, where {outputs[1].size} had been expected"
            )
        else:
            outputs[1][...] = what


def talk(question: Mapping[str, Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    """Begin a conversation, go on with the last one, or end it.

    Raises:
        Exception: of the library, or of an answer of another form.
    """
    kind = question["talk"]
    if kind == "begin":
        _TALKS.append(_Conversation(question, inputs))
        _TALKS[-1].go_on(outputs)
    elif kind == "reply":
        _TALKS[-1].go_on(outputs, inputs[0])
    else:
        found = _TALKS.pop().result
        parts = tuple(_part(found, name) for name in question["parts"]) or (found,)
        write_answer(parts, question["form"], outputs, question["lengths"])


def _part(found: Any, path: str) -> Any:
    """A part of what the library gave, by names and numbers; all of it by none."""
    for name in filter(None, path.split(".")):
        if name.isdigit():
            found = found[int(name)]
        else:
            found = found[name] if isinstance(found, Mapping) else getattr(found, name)
    return found


def odeint(slope: Any, start: Any, times: Any, **options: Any) -> Any:
    """``scipy.integrate.odeint``, which raises an error where it has given up.

    Raises:
        RuntimeError: that it has.
    """
    from scipy.integrate import odeint as solve  # type: ignore[import-untyped,unused-ignore]

    found, told = solve(slope, start, times, full_output=True, **options)
    if not told["message"].startswith(("Integration successful", "Nothing was done")):
        raise RuntimeError(told["message"])
    return found


def curve_fit(model: Any, count: int, x: Any, y: Any, **options: Any) -> Any:
    """``scipy.optimize.curve_fit`` of a model that is a function of the vector of parameters."""
    from scipy.optimize import curve_fit as fit  # type: ignore[import-untyped,unused-ignore]

    def of_vector(function: Any) -> Any:
        def value(_: Any, *parameters: Any) -> Any:
            return function(np.array(parameters))

        return value

    place = inspect.Parameter.POSITIONAL_OR_KEYWORD
    names = [inspect.Parameter(f"p{n}", place) for n in range(count + 1)]
    called: Any = of_vector(model)
    called.__signature__ = inspect.Signature(names)
    if callable(options.get("jac")):
        options["jac"] = of_vector(options["jac"])
    return fit(called, x, y, **options)


def solve_ivp(
    fun: Any,
    span: Any,
    start: Any,
    method: str,
    places: Any,
    events: Sequence[Any],
    most: int,
    **options: Any,
) -> tuple[Any, ...]:
    """``scipy.integrate.solve_ivp``: times, states and numbers, with room for ``most`` steps."""
    from scipy.integrate import solve_ivp as solve  # type: ignore[import-untyped,unused-ignore]

    watched = [_watched(*event) for event in events]
    found = solve(fun, span, start, method, places, events=watched or None, **options)
    count = len(found.t)
    if count > most:
        raise ValueError(f"solve_ivp takes {count} steps, and {most} are kept: give t_eval=")
    parts = [_roomy(found.t, (most,)), _roomy(found.y, (len(start), most)), count]
    parts += [found.nfev, found.njev, found.nlu, found.status, bool(found.success)]
    for n in range(len(events)):
        times, states = found.t_events[n], found.y_events[n]
        if len(times) > MOST_EVENTS:
            raise ValueError(f"solve_ivp finds {len(times)} events, and {MOST_EVENTS} are kept")
        parts += [_roomy(times, (MOST_EVENTS,)), _roomy(states, (MOST_EVENTS, len(start)))]
        parts.append(len(times))
    return tuple(parts)


MOST_EVENTS = 1_000
"""Events of a kind that are kept."""


def _watched(function: Any, ends: Any, direction: Any) -> Any:
    def event(t: Any, y: Any) -> Any:
        return function(t, y)

    vars(event).update(terminal=ends, direction=direction)
    return event


def _roomy(values: Any, shape: tuple[int, ...]) -> Any:
    found = np.zeros(shape, np.asarray(values).dtype)
    values = np.reshape(values, (0, *shape[1:])) if not np.size(values) else np.asarray(values)
    found[tuple(slice(n) for n in values.shape)] = values
    return found
