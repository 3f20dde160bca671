"""Collections of cases, by name: the corpus, functions of NumPy, examples of its docstrings."""

from __future__ import annotations

from collections.abc import Mapping

from from_numpy.corpus.registry import Case

COLLECTIONS = ("corpus", "functions", "docstrings")


def collection(name: str) -> Mapping[str, Case]:
    """The cases of a collection, by their names; what it needs is imported here.

    Beside COLLECTIONS there is "faulty", for the test of the sweep.
    """
    if name == "corpus":
        from from_numpy.corpus import CORPUS

        return CORPUS
    if name == "functions":
        from from_numpy.functions import PROGRAMS

        return PROGRAMS
    if name == "docstrings":
        from from_numpy.numpy_docstrings import cases

        return cases()
    if name == "faulty":
        from from_numpy.faulty_cases import FAULTY

        return FAULTY
    raise ValueError(f"{name!r} is none of {', '.join(COLLECTIONS)}")
