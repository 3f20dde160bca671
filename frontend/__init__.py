"""Frontends: each turns a program of another kind into an SDFG, with names and pinned layouts."""

if __name__ != "distspmd.frontend":
    raise ImportError("this package is imported as distspmd.frontend")
