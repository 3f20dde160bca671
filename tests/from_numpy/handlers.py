"""Programs with ``try``: what NumPy and the program itself raise, and what handlers do then."""

from __future__ import annotations

from typing import Any

import numpy as np

from from_numpy.corpus.registry import Case


def inv_or(x: Any) -> Any:
    try:
        y = np.linalg.inv(x)
    except np.linalg.LinAlgError:
        y = np.zeros_like(x)
    return y


def is_pd(x: Any) -> Any:
    try:
        np.linalg.cholesky(x)
        return True
    except np.linalg.LinAlgError:
        return False


def retry(x: Any) -> Any:
    jitter = 1e-6
    for i in range(4):
        try:
            factor = np.linalg.cholesky(x + jitter * np.eye(len(x)))
            break
        except np.linalg.LinAlgError as error:
            print("failed", i, error)
            jitter *= 1000
    else:
        factor = np.zeros_like(x)
        jitter = -1.0
    return factor, jitter


def own(x: Any, b: Any) -> Any:
    count = 0
    try:
        assert x.max() > 0.5
        if x[0, 0] > 3:
            raise ValueError("large")
        y = np.linalg.solve(x, b)
        count += 1
    except AssertionError:
        y = b * 0
    except np.linalg.LinAlgError as error:
        print("error:", error)
        y = b * 2
    except (ValueError, KeyError) as error:
        print("error:", error)
        y = b * 3
    else:
        y = y + 1
    finally:
        count += 10
    return y, count


def nested(x: Any) -> Any:
    try:
        try:
            y = np.linalg.inv(x)
        except ZeroDivisionError:
            y = x
        z = y + 1
    except np.linalg.LinAlgError:
        z = x - 1
    return z


def loops(x: Any, b: Any) -> Any:
    out = np.zeros_like(b)
    n = 0
    for k in range(3):
        try:
            out[k] = np.linalg.solve(x[k], b[k])
        except np.linalg.LinAlgError:
            n += 1
            continue
        out[k] += 1
    return out, n


def inner_loop(x: Any) -> Any:
    total = 0.0
    try:
        for k in range(len(x)):
            if x[k] < 0.1:
                raise ValueError
            total += 1 / x[k]
    except ValueError:
        total = -total
    return total


def while_raise(x: Any) -> Any:
    n = 0
    try:
        while True:
            x = x / 2
            n += 1
            assert np.sum(x) > 0.01
    except AssertionError:
        pass
    return x, n


def in_condition(x: Any) -> Any:
    try:
        if np.linalg.inv(x)[0, 0] > 0:
            return 1
    except np.linalg.LinAlgError:
        return 2
    return 3


def returns(x: Any) -> Any:
    try:
        return np.linalg.inv(x).sum()
    except Exception:
        return np.nan
    finally:
        x[0, 0] = 7


def rolled(x: Any) -> Any:
    n = 0
    for i in range(200):
        try:
            if x[i] < 0.2:
                raise ValueError("small")
            n += 1
        except ValueError:  # noqa: PERF203
            x[i] = 1
    return x, n


def outer_loop(x: Any) -> Any:
    n = 0
    try:
        for i in range(200):
            assert x[i] > 0.01
            n += 1
    except AssertionError:
        return -n
    return n


def aug(x: Any) -> Any:
    y = np.zeros_like(x)
    try:
        y += np.linalg.inv(x)
    except np.linalg.LinAlgError:
        y -= 1
    return y


def imports(x: Any) -> Any:
    try:
        import not_there  # noqa: F401

        return x
    except ImportError:
        return x + 1


def root(f: Any, low: Any, high: Any) -> Any:
    at_low, at_high = f(low), f(high)
    if at_low * at_high > 0:
        raise ValueError("the ends have the same sign")
    for _ in range(60):
        middle = (low + high) / 2
        if abs(f(middle)) < 1e-12:
            return middle
        if at_low * f(middle) < 0:
            high = middle
        else:
            low = middle
    raise RuntimeError("no convergence")


def of_called(x: Any) -> Any:
    found = np.zeros(len(x))
    for i, value in enumerate(x):
        try:
            found[i] = root(lambda t, value=value: t**3 - value, -0.5, 1.0)
        except (ValueError, RuntimeError):  # noqa: PERF203
            found[i] = -7
    return found


def solve(a: Any, b: Any) -> Any:
    if abs(np.linalg.det(a)) < 1e-12:
        raise np.linalg.LinAlgError("singular")
    return np.linalg.solve(a, b)


def of_twice_called(a: Any, b: Any) -> Any:
    try:
        return solve(a, b).sum() + solve(a - np.eye(3), b).sum()
    except np.linalg.LinAlgError:
        return -1.0


def through_two(a: Any, b: Any) -> Any:
    def inner(c: Any) -> Any:
        try:
            return solve(c, b)
        except ZeroDivisionError:
            return b * 0

    try:
        y = inner(a)
    except np.linalg.LinAlgError:
        y = b + 1
    return y


def of_functions(good: Any, singular: Any, b: Any) -> Any:
    twice = of_twice_called(good, b), of_twice_called(singular, b), of_twice_called(good * 0, b)
    through = through_two(good, b), through_two(singular, b)
    return *twice, *through, of_called(np.linspace(-2, 2, 7))


def of_matrices(good: Any, singular: Any, b: Any) -> Any:
    table = np.stack([good, singular, good + 1])
    inverses = inv_or(good), inv_or(singular), nested(good), nested(singular)
    tests = is_pd(good), is_pd(-good), in_condition(good), in_condition(singular)
    changed = good.copy()
    ends = returns(changed), returns(singular.copy()), aug(good), aug(singular)
    raised = own(good, b), own(good * 0, b), own(good * 5, b)
    return *inverses, *tests, changed, *ends, *raised, loops(table, table[0]), imports(good)


def of_loops(x: Any, good: Any, singular: Any) -> Any:
    small = retry(singular - 0.001 * np.eye(3)), retry(-good)
    stopped = inner_loop(x[:3] + 0.1), inner_loop(x[:3] - x[:3])
    return small, stopped, rolled(x.copy()), outer_loop(x), outer_loop(x + 0.1), while_raise(x)


def matrices(rng: Any) -> Any:
    return np.eye(3) * 2 + 0.1, np.ones((3, 3)), np.arange(3.0)


CASES = [
    Case("of_matrices", of_matrices, "", "", matrices, ()),
    Case("of_functions", of_functions, "", "", matrices, ()),
    Case("of_loops", of_loops, "", "", lambda r: (r.random(200), *matrices(r)[:2]), ()),
]
