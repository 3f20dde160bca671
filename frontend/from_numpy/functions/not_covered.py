"""Functions of NumPy that are not covered, and what to write instead; for `docs/numpy.md`."""

from __future__ import annotations

import numpy as np

from distspmd.frontend.from_numpy.functions.registry import refused

_BEFORE = "compute it before the program, and pass the result"
_OUTSIDE = "read or write files outside of the program"

refused(
    *(np.unique_all, np.unique_counts, np.unique_inverse),
    instead="write np.unique with return_index=, return_inverse= or return_counts=",
)
refused(
    *(np.delete, np.insert, np.resize),
    instead="concatenate the parts that stay: np.concatenate((x[:k], x[k + 1:]))",
)
refused("resize", instead="make an array of the new shape, and assign its part")
refused(
    *(np.place, np.putmask, np.copyto),
    instead="write x[mask] = value, or x[...] = np.where(mask, value, x)",
)
refused(np.put, "put", instead="write x.reshape(-1)[indices] = values")
refused(
    *(np.poly, np.polyadd, np.polyder, np.polydiv, np.polyint, np.polymul, np.polysub, np.roots),
    instead=f"it is a function of a few coefficients; {_BEFORE}",
)
refused(np.polyfit, instead="write np.linalg.lstsq(np.vander(x, deg + 1), y)[0]")
refused(np.isreal, instead="write np.imag(x) == 0")
refused(np.iscomplex, instead="write np.imag(x) != 0")
refused(np.isneginf, instead="write x == -np.inf")
refused(np.isposinf, instead="write x == np.inf")
refused(np.fix, instead="write np.trunc(x)")
refused(
    np.sinc,
    instead="write np.where(x == 0, 1.0, np.sin(np.pi * x) / np.where(x == 0, 1, np.pi * x))",
)
refused(np.i0, instead=_BEFORE)
refused(np.logspace, instead="write 10.0 ** np.linspace(start, stop, num)")
refused(np.geomspace, instead="write np.exp(np.linspace(np.log(start), np.log(stop), num))")
refused(np.real_if_close, instead="its type depends on the values; write np.real(x)")
refused(
    *(np.ravel_multi_index, np.unravel_index),
    instead="write the index with //, % and * of the extents",
)
refused(
    *(np.packbits, np.unpackbits),
    instead="write shifts and masks: (x[..., None] >> np.arange(8)) & 1",
)
refused(np.array_equiv, instead="write np.all(x == y)")
refused(
    *(np.apply_over_axes, np.frompyfunc),
    instead="write the function over whole arrays",
)
refused(
    *(np.shares_memory, np.may_share_memory),
    instead="it is known where the program is written; leave it out",
)
refused(
    *(np.load, np.loadtxt, np.genfromtxt, np.fromfile, np.fromregex, np.fromstring),
    *(np.save, np.savetxt, np.savez, np.savez_compressed),
    *("tofile", "dump", "dumps", "tobytes"),
    instead=_OUTSIDE,
)
refused(
    *(np.array2string, np.array_repr, np.array_str),
    instead="print(x) writes it, on rank 0",
)
refused(
    *("view", "getfield", "setfield", "byteswap", "setflags"),
    instead="it is about bytes in memory, and a program has tiles; use astype",
)
refused(
    *(np.random.beta, np.random.binomial, np.random.gamma, np.random.poisson),
    *(np.random.chisquare, np.random.dirichlet, np.random.f, np.random.hypergeometric),
    *(np.random.logseries, np.random.multinomial, np.random.multivariate_normal),
    *(np.random.negative_binomial, np.random.noncentral_chisquare, np.random.noncentral_f),
    *(np.random.standard_gamma, np.random.standard_t, np.random.triangular),
    *(np.random.vonmises, np.random.wald, np.random.zipf, np.random.bytes),
    instead="draw it before the program, and pass it",
    always=True,
)
refused(
    *(np.random.get_state, np.random.set_state),
    instead="a generator is its seed and the number of its draws; seed it anew",
    always=True,
)
