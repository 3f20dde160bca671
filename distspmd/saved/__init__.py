"""Lowered programs as bytes, files and texts, by which other processes go on with them."""

from distspmd.saved.programs import (
    carried_record,
    from_bytes,
    is_saved_program,
    load,
    record_text,
    save,
    to_bytes,
)

__all__ = [
    "carried_record",
    "from_bytes",
    "is_saved_program",
    "load",
    "record_text",
    "save",
    "to_bytes",
]
