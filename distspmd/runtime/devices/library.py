"""The functions of the library of a device, as Python calls them."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

from distspmd.errors import DeviceError

_NUMBER, NUMBERS = ctypes.c_int64, ctypes.POINTER(ctypes.c_int64)
_ADDRESS = ctypes.c_void_p
MAKE_ROOM = ctypes.CFUNCTYPE(ctypes.c_int64)
"""What frees memory that is kept for others; it says how many allocations that were."""

_ABI: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "device_allocate": (_ADDRESS, (_NUMBER,)),
    "device_make_room_by": (None, (MAKE_ROOM,)),
    "device_free": (None, (_ADDRESS,)),
    "device_give_up": (None, (_ADDRESS, _NUMBER)),
    "device_copy": (ctypes.c_int, (_ADDRESS, _ADDRESS, _NUMBER)),
    "device_wait": (ctypes.c_int, ()),
    "device_error": (ctypes.c_char_p, (ctypes.c_int,)),
    "device_has": (ctypes.c_int, (_ADDRESS,)),
    "device_use": (ctypes.c_int, (ctypes.c_int,)),
    "device_number": (ctypes.c_int, ()),
    "device_bytes": (_NUMBER, ()),
    "device_export": (ctypes.c_int, (_ADDRESS, _ADDRESS)),
    "device_try_open": (ctypes.c_int, (_ADDRESS,)),
    "device_order": (ctypes.c_int, (_ADDRESS, _ADDRESS)),
    "device_copy_on": (ctypes.c_int, (_ADDRESS, _ADDRESS, _ADDRESS, _NUMBER)),
    "device_stream_create": (_ADDRESS, ()),
    "device_stream_destroy": (None, (_ADDRESS,)),
    "device_let_go": (None, (_ADDRESS,)),
    "device_drop_capsule": (None, (_ADDRESS,)),
    "device_next_let_go": (_ADDRESS, ()),
    "device_stream_wait": (ctypes.c_int, (_ADDRESS,)),
    "device_prepare_reductions": (ctypes.c_int, ()),
    "products_load": (ctypes.c_char_p, (ctypes.c_char_p,)),
    "products_error": (ctypes.c_char_p, ()),
    "transport_create": (_ADDRESS, (_ADDRESS, _ADDRESS, NUMBERS)),
    "transport_name": (None, (_ADDRESS, ctypes.c_char_p)),
    "transport_destroy": (None, (_ADDRESS,)),
    "transport_run": (None, (_ADDRESS, _NUMBER, _ADDRESS, _ADDRESS)),
    "transport_bytes": (None, (_ADDRESS, NUMBERS)),
    "transport_use_pulls": (None, (_ADDRESS, _ADDRESS, _ADDRESS, NUMBERS)),
    "transport_use_messages": (
        None,
        (_ADDRESS, _ADDRESS, _ADDRESS, ctypes.POINTER(_ADDRESS), _ADDRESS, ctypes.c_int, NUMBERS),
    ),
    "transport_messages": (_NUMBER, (_ADDRESS, ctypes.c_int)),
    "nccl_load": (ctypes.c_char_p, (ctypes.c_char_p,)),
    "nccl_make": (ctypes.c_char_p, (_ADDRESS,)),
    "nccl_join": (
        ctypes.c_char_p,
        (ctypes.POINTER(_ADDRESS), _ADDRESS, ctypes.c_int, ctypes.c_int),
    ),
    "nccl_leave": (None, (_ADDRESS,)),
    "transport_lend": (None, (_ADDRESS, _ADDRESS)),
    "transport_pulls": (_NUMBER, (_ADDRESS,)),
}
"""Result and arguments of each function of ``device/device.hpp``."""


@cache
def load(path: Path) -> ctypes.CDLL:
    """The library of a path.

    Raises:
        DeviceError: it cannot be loaded.
    """
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise DeviceError(f"the device's library cannot be loaded: {error}") from None
    for name, (result, arguments) in _ABI.items():
        function = library[f"distspmd_{name}"]
        function.restype, function.argtypes = result, arguments
        setattr(library, f"distspmd_{name}", function)
    return library


def address_of(function: Any) -> int:
    """Where a function of C is."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0
