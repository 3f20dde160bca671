"""Writes `docs/numpy.md`: what of NumPy a program may use, and what to write instead of the rest.

    python scripts/write_numpy_table.py [--check]

It asks the registry of the front end, for all public functions of NumPy and methods of arrays. With
`--check` nothing is written, and the exit status says whether the page would change.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy import api  # noqa: F401 (it fills the registry)
from distspmd.frontend.from_numpy.arrays.arithmetic import BUILDS
from distspmd.frontend.from_numpy.host.scipy_signatures import NAMES, OF_DISTRIBUTIONS, PLACES
from distspmd.frontend.from_numpy.numpy.asking import SOLVERS
from distspmd.frontend.from_numpy.numpy.registry import FUNCTIONS, METHODS, REFUSALS, REFUSED

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/numpy.md"

HEAD = """\
# NumPy programs

What a program may use of NumPy, from the registry of the front end (`frontend/from_numpy/`);
`python scripts/write_numpy_table.py` writes this page. Results have NumPy's types, shapes and
values, but for the order of sums.

Every function but those of `np.random` also takes arguments that are known when the program is
read (types, shapes, numbers, tables): then NumPy itself computes the result, once. "Refused" is
said of the others, with an error that has the source line.

## What is different

- **Numbers of Python** come back as such (`len(x)`, `float(x[0])`, a count), those of NumPy as
  NumPy's. A number of which the run decides the type, as of `best = inf` that a loop or a
  branch makes a whole number, and of `min(best, n)`, is returned in the type that it has in
  Python; where it is computed with, it has the type that holds them all, a float here, and so
  does what is computed. What is changed in each iteration of a loop has the type behind one, also
  where there is none. Numbers in a list have the types that they have in Python, `[0, np.inf]` say,
  also where the run decides; what is computed of them where these types decide its type is refused.
- **float16** is stored as such, and computed with in float32 and rounded, as NumPy does it: values
  have its bits, but for sums, which are added up in float32 and rounded once. Functions that
  reorder, compare, add up or multiply take it; others are refused by name.
- **Parts of complex numbers and `view`** are the memory of their array: what is written to either
  is seen in both. Through elements of another size nothing is written. Arrays in the other order
  of bytes are refused.
- **Objects**: functions of `np.frompyfunc` give arrays of numbers here, of the type that these
  have, where NumPy gives arrays of objects. Arrays of texts, objects, dates and times between them
  are computed with when the program is read, by NumPy, and must be known then.
- **Random numbers** are not NumPy's: a number is a function of the seed, of which draw of its
  generator it is, and of its place in the array (`distspmd/kernels/counter_rng.hpp`). It is the
  same at any number of ranks, on any grid (of `multivariate_normal` but for the order of sums),
  and each call is a new draw, in loops too. The seed is a number, several known ones, or an
  argument; without one it is 0, in each call of the program. Generators that were made outside of a
  program are refused; `rng.spawn(n)` makes others inside. Parameters that no distribution has end
  the program with a `ValueError`.
- **Errors** that depend on values are raised on all ranks: `assert`, `raise`, and `LinAlgError`,
  as `distspmd.errors.ProgramError`, which is Python's error, too, with the source line. In the
  body of a parallel map there are none: a singular matrix gives NaN there, and `assert` and
  `raise` are refused.
- **Names without a value**: a program ends with `UnboundLocalError`, on all ranks, where a name is
  read that no branch or iteration of this run has given a value. Where the front end proves that
  it has one, nothing is asked. In a parallel map such a name is refused.
- **Decorators** of the user are called. Those that keep results or compile (`functools.cache`,
  `numba.njit`) change nothing.
- **Classes** of the user, also those that a function defines: objects are made, read, changed
  and returned, with methods, properties and operators. Objects and arrays from outside are read;
  what changes them is refused, and so are results that hold other objects or functions. `match`
  takes values, names and alternatives of values.
- **None** where the run decides it: a variable, an attribute or an entry may be None at first, or
  again, and a value in other iterations. Where None is computed with, the program ends with
  `TypeError`. Lists whose content the run decides hold no None.
- **Recursion**: calls are written out, as deep as is known when the program is read. Where the run
  decides how often a function calls itself it is a loop; what is read behind a call that is not its
  last act is kept in lists, which have room as such lists have. Such a function
  gives its calls arrays of one shape.
- **`eval`**: Python runs it with the variables that it is given (`eval(text, {"a": a})`,
  [regions](host.md)); one that sees those around it is refused.
- **Generators**: a loop over one, or over `enumerate` of it, is the generator's body with that of
  the loop where it yields; `list`, `sum`, `any` and their like read it. One that a variable or an
  attribute keeps, which is asked by `next` or `send`, read in parts, or taken by `zip`, `islice`
  and `takewhile`, takes one step at a time: it is an object with the variables that live from one
  step to the next, which loops carry. Such a one yields in statements of their own, not in a
  `try` or a `with`. So do objects with `__next__`. Iterators over what is known (`iter([1, 2])`)
  are asked where they were made, not in a branch or a loop of the run.
- **Errors of Python** that are known when the program is read (an operator, a part, a length or a
  call that a value has not, an attribute that cannot be set, too many values to unpack) are raised
  there, in Python's words, unless a handler of the program takes them.
- **`try`**: handlers take `LinAlgError`, what the body itself raises or asserts, and what an index
  or key raises that the body reads, if they name `IndexError`, `KeyError` or `LookupError`. What
  such a handler would take that may come from elsewhere (an index in an array of indices, or one
  that is written at) is refused. A handler of all errors (`except Exception`) does not run for an
  index or a key: the program ends there, with an error that says so. Python
  reads files ([regions](host.md)).
- **Python's `random`** draws the numbers of Python: Python runs what draws ([regions](host.md)).
- **`warnings.warn`** writes on rank 0, to the standard error, what its settings let through when
  the program is read; the rest is left out. So it is with **`logging`**, which Python runs
  ([regions](host.md)).
- **Structured arrays** (`np.zeros(n, [("x", float), ("v", float, 2)])`, and `np.array` of tuples)
  are an array for each field: fields are read, written and changed in place, and rows are read and
  written. They are not returned, and no function of NumPy takes one: give it the fields.
- **`print`** writes on rank 0, in the order of the program, what Python would write; of arrays of
  at most a million elements, which all ranks get.
- **Texts** that the run decides (`"yes" if x > 0 else "no"`, `names[np.argmax(x)]`, a text that a
  branch or a loop sets) are printed, joined, formatted, compared, returned, elements of lists
  whose content the run decides, and keys of dictionaries that are known. Those with numbers in
  them (`f"{x:.2f}"`) are printed, joined, formatted and returned. Other texts of which the run
  decides the letters are objects of Python, which runs what reads them ([regions](host.md)).
- **`np.linalg`** calls LAPACK on each rank. Dimensions of a stack are split, and columns of
  right-hand sides; `cholesky`, `solve`, `inv`, `det` and `slogdet` of one matrix of 256 rows or
  more run on [all ranks together](lowering.md#matrices), as do `qr` of any, `svd` without full
  matrices and `lstsq` where it has four times as many rows as columns, and, with ScaLAPACK, `eigh`,
  `eigvalsh` and `svd` of a square one. Dimensions of other matrices are whole. The residuals of
  `np.linalg.lstsq` need a matrix of full rank.
- **Real or complex**: the eigenvalues of a real matrix (`np.linalg.eig`, `eigvals`, `np.roots`)
  are real numbers if all of them are, and complex ones otherwise, and so are what is computed of
  them and what the program returns. They are computed in complex numbers (`dgeev`). Where one
  type has to be known, as in an array of real numbers that they are written into, or for
  `float(...)` and `np.floor`, they are taken for real, and a run that has found others ends with
  a `TypeError` that names the line; `np.linalg.eig(a.astype(complex))` is complex always. Their
  `dtype` is refused.
- **SciPy** itself computes what a program calls of it, but for what the table below names as
  compiled, which agrees with SciPy but for rounding. Of what is known when the program is read, as
  the coefficients of `scipy.signal.butter(4, 0.2)`, SciPy computes every function once.
  - **By signature**: each rank calls SciPy on its block of the dimensions that the function does
    not need whole. These are the functions of the table, along any dimensions that `axis=` or
    `axes=` names, all universal functions of `scipy.special`, densities and quantiles of the
    distributions of `scipy.stats`, and objects that are called at places (`CubicSpline`,
    `interp1d`, `RegularGridInterpolator`, `cKDTree.query` and their like).
  - **Whole**: all other functions, and calls in which no dimension is left, run on one rank that
    has the arrays whole, which `explain` shows and a search prices. Objects (`cKDTree`,
    `ConvexHull`, `gaussian_kde`, `RBFInterpolator`, `Rotation`) are made where something is asked
    of them, of copies of what they were given.
  - **Solvers** ask for functions of the program, which run on all ranks: those of the table. They
    give no warnings and no texts; `odeint` ends with a `RuntimeError` where SciPy warns. Of
    `solve_ivp` at most 10,000 steps are kept without `t_eval`, and `dense_output` integrates once
    more.
  - What an answer consists of is found out by calls with other numbers when the program is read;
    where its length is for the values to decide, it has to be known how long it is at most
    (`find_peaks`, `argrelextrema`, the corners of hulls, pairs of a tree, knots of splines). An
    answer of another form, and an error of SciPy, end the program with what SciPy says. Texts and
    sets are no answers.
  - In a loop over elements a function that is not compiled is called for each of them; give it the
    whole array. In a `distspmd.map` it is refused.
- **Sparse matrices** are objects of programs, as their entries, or whole where entries are written
  one by one; they are no arguments and no results (`toarray()` is), and those that are
  made as csr, csc or coo matrices of arrays or entries have `data`, `indices`, `indptr` and `nnz`,
  as long as nothing is written to them. `spsolve` eliminates three diagonals, and takes other
  matrices whole.
- **Masked arrays** (`np.ma`), **matrices** (`np.matrix`), **polynomials** (`np.poly1d`,
  `np.polynomial.Polynomial`) and arrays of users' classes are objects of Python
  ([regions](host.md)). What they give as plain arrays (`m.filled(0)`, `np.asarray(m)`, `p(x)`) is
  part of the program. Array work that ranks could share is refused on them: write `np.where(mask,
  ...)`, `@`, or the functions of coefficients (`np.polyval`, `np.polyfit`, ...). `np.roots` of
  coefficients whose first or last one is zero, which NumPy leaves out, ends with a `ValueError`.
- **Memory**: `strides` and `as_strided` are those of arrays as NumPy makes them, in reading order,
  for windows and repetitions along dimensions; `ravel(order="K")`, `flags` and `base` are refused.
"""

SPACES: tuple[tuple[str, Any], ...] = (
    ("np", np),
    ("np.linalg", np.linalg),
    ("np.fft", np.fft),
    ("np.random", np.random),
)
_INTERNAL = {"test", "info", "show_config", "show_runtime", "get_include"}


def page() -> str:
    """The whole page."""
    lines = [HEAD]
    for name, module in SPACES:
        lines += _of_functions(name, module)
    lines += _of_ufuncs()
    lines += _of_methods()
    lines += _of_scipy()
    return "\n".join(lines) + "\n"


def _public(module: Any) -> Iterator[tuple[str, Any]]:
    for name in sorted(set(getattr(module, "__all__", dir(module)))):
        value = getattr(module, name, None)
        if name.startswith("_") or name in _INTERNAL or isinstance(value, type):
            continue
        if callable(value) and not isinstance(value, np.ufunc):
            yield name, value


def _of_functions(title: str, module: Any) -> list[str]:
    works, instead, rest = [], [], []
    for name, value in _public(module):
        handler = FUNCTIONS.get(value)
        if handler is not None and handler not in REFUSALS:
            works.append(f"`{name}`")
        elif value in REFUSED:
            instead.append((name, REFUSED[value]))
        else:
            rest.append(f"`{name}`")
    return _section(f"`{title}`", works, instead, rest)


def _section(
    title: str, works: list[str], instead: list[tuple[str, str]], rest: list[str]
) -> list[str]:
    lines = [f"## {title}", "", f"Works: {', '.join(works)}.", ""]
    if instead:
        rows = [f"| `{name}` | {told.replace('|', chr(92) + '|')} |" for name, told in instead]
        lines += ["| refused | instead |", "|---|---|", *rows, ""]
    if rest:
        lines += [f"Of what is known when the program is read alone: {', '.join(rest)}.", ""]
    return lines


def _of_ufuncs() -> list[str]:
    every = {n: v for n, v in sorted(vars(np).items()) if isinstance(v, np.ufunc)}
    by_others = {"divmod"}  # from two of them
    works = [
        f"`{n}`" for n, v in every.items() if v in FUNCTIONS or v.__name__ in {*BUILDS, *by_others}
    ]
    rest = [f"`{n}`" for n, v in every.items() if f"`{n}`" not in works]
    methods = [f"`{key[1]}`" for key in FUNCTIONS if isinstance(key, tuple) and key[0] == "ufunc"]
    lines = _section("Universal functions", works, [], rest)
    return [*lines, f"Their methods {', '.join(sorted(methods))} work as well.", ""]


def _of_methods() -> list[str]:
    names = [n for n in sorted(dir(np.ndarray)) if not n.startswith("_")]
    works, instead, rest = [], [], []
    for name in names:
        handler = METHODS.get(name, FUNCTIONS.get(("attribute", name)))
        if handler is not None and handler not in REFUSALS:
            works.append(f"`{name}`")
        elif name in REFUSED:
            instead.append((name, REFUSED[name]))
        else:
            rest.append(f"`{name}`")
    lines = _section("Methods and attributes of arrays", works, instead, [])
    return [*lines, f"Refused, as they are about memory: {', '.join(rest)}."]


_FULL = {"scipy.spatial": "scipy.spatial.distance", "scipy._lib": "scipy.sparse"}


def _names_in_packages() -> Iterator[tuple[str, str]]:
    for key in FUNCTIONS:
        if isinstance(key, tuple) and str(key[0]).startswith("scipy."):
            yield key


def _of_scipy() -> list[str]:
    """What there is of SciPy, by its packages."""
    compiled: dict[str, set[str]] = {}
    for module, name in _names_in_packages():
        full = _FULL.get(module, module)
        if FUNCTIONS[module, name] not in REFUSALS and (module, name) not in _SOLVERS:
            compiled.setdefault(full, set()).add(name)
    split: dict[str, set[str]] = {}
    for each in (*NAMES, *(name for name in PLACES if "interpolate." in name)):
        module, _, name = f"scipy.{each}".rpartition(".")
        split.setdefault(module, set()).add(name)
    split["scipy.interpolate"] |= {n for n in PLACES if "Tree" not in n and "." not in n}
    split["scipy.spatial"] = {n for n in PLACES if "." in n and "interpolate" not in n}
    asking: dict[str, set[str]] = {"scipy.optimize": {"curve_fit"}}
    for package, name in SOLVERS:
        asking.setdefault(f"scipy.{package}", set()).add(name)
    lines = ["", "## `scipy`", ""]
    for title, found in (
        ("compiled", compiled),
        ("by signature", split),
        ("asks for functions of the program", asking),
    ):
        lines += [f"| package | {title} |", "|---|---|"]
        for module, names in sorted(found.items()):
            kept = ", ".join(f"`{n}`" for n in sorted(names - _NO_FUNCTIONS))
            lines += [f"| `{module}` | {kept} |"] if kept else []
        lines.append("")
    return lines


_SOLVERS = {("scipy.optimize", "curve_fit")}
_NO_FUNCTIONS = {"()", *OF_DISTRIBUTIONS, "entropy", "mean", "median", "std", "var", "interval"}
"""Methods of distributions, which are by signature."""


def main() -> int:
    """Write the page, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    arguments = parser.parse_args()
    text = page()
    same = PAGE.exists() and PAGE.read_text() == text
    if arguments.check:
        return 0 if same else 1
    if not same:
        PAGE.write_text(text)
        print(f"{PAGE.relative_to(ROOT)} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
