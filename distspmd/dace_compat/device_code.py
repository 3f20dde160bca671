"""DaCe's code for CUDA (2.0.0b1): with which settings it is generated, and what it has wrong."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from dace import config, dtypes

_SETTINGS = (
    ("backend", "cuda"),  # else DaCe looks for a device
    ("max_concurrent_streams", -1),  # all kernels are on one stream, the legacy default one
    ("thread_id_type", "int64"),
)


@contextmanager
def for_cuda() -> Iterator[None]:
    """DaCe's settings for kernels, put back afterwards.

    SymPy sorts the factors of a number of threads, and compares for that the types that DaCe gives
    to the constants in them; these have an order meanwhile.
    """
    with ExitStack() as stack:
        for method, compare in (("__lt__", operator.lt), ("__gt__", operator.gt)):
            stack.callback(setattr, dtypes.typeclass, method, getattr(dtypes.typeclass, method))
            setattr(dtypes.typeclass, method, _by_name(compare))
        for name, value in _SETTINGS:
            stack.enter_context(config.set_temporary("compiler", "cuda", name, value=value))
        yield


def _by_name(compare: Callable[[str, str], bool]) -> Callable[[object, object], bool]:
    return lambda one, other: compare(str(one), str(other))


_NUMBER = "const int __dace_device = 0;"
_OWN_NUMBER = "const int __dace_device = distspmd_device_number();"
_DECLARED = 'extern "C" int distspmd_device_number();\n'


def corrected(code: str) -> str:
    """Generated code that compiles, and works on the device of its rank.

    A body that has the address of a kernel's input declares it ``const`` twice. The device is
    always the first one; its number comes from the library of the device instead.
    """
    code = code.replace("const const ", "const ")
    if _NUMBER not in code:
        return code
    return _DECLARED + code.replace(_NUMBER, _OWN_NUMBER)
