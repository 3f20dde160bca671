"""What runs on the ranks: launching, the C++ engine and its headers, shared memory, errors.

May import `distspmd.planning` and whatever that may import; no DaCe, and MPI only when it is used.
"""

from typing import TYPE_CHECKING

from distspmd.lazy import lazy_names

if TYPE_CHECKING:
    from distspmd.runtime.allocation import launched_ranks
    from distspmd.runtime.calls.missing_result import MissingResult
    from distspmd.runtime.devices.arrays import DeviceArray, DeviceStream
    from distspmd.runtime.redistribution.redistribute import allocate

__all__ = ["DeviceArray", "DeviceStream", "MissingResult", "allocate", "launched_ranks"]

__getattr__ = lazy_names(
    __name__,
    {
        "DeviceArray": "distspmd.runtime.devices.arrays",
        "DeviceStream": "distspmd.runtime.devices.arrays",
        "MissingResult": "distspmd.runtime.calls.missing_result",
        "allocate": "distspmd.runtime.redistribution.redistribute",
        "launched_ranks": "distspmd.runtime.allocation",
    },
)
