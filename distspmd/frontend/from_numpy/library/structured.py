"""Structured arrays, as programs see them: an array for each field."""

from __future__ import annotations

from typing import Any


class StructuredArray:
    """Arrays of one shape, by the names of fields.

    Attributes:
        fields: the arrays, which may have dimensions of their own behind those of the whole.
        shape: of the whole.
    """

    def __init__(self, fields: Any, shape: Any) -> None:
        self.fields = fields
        self.shape = shape

    def __getitem__(self, key: Any) -> Any:
        """A field, several of them, or a part of all."""
        if isinstance(key, str):
            return self.fields[key]
        if isinstance(key, list) and len(key) > 0 and isinstance(key[0], str):
            return StructuredArray({name: self.fields[name] for name in key}, self.shape)
        if len(self.shape) == 0:
            return list(self.fields.values())[key]
        if not isinstance(key, int) or len(self.shape) > 1:
            raise NotImplementedError(
                "a part of a structured array that is no row; take it of each field: z['x'][1:]"
            )
        return StructuredArray({name: self.fields[name][key] for name in self.fields}, ())

    def __setitem__(self, key: object, value: object) -> None:
        """Assign to a field, or to a row."""
        if isinstance(key, str):
            self.fields[key][...] = value
        elif isinstance(value, StructuredArray):
            for name in self.fields:
                self.fields[name][key] = value.fields[name]
        elif isinstance(value, tuple):
            for name, part in zip(self.fields, value, strict=True):
                self.fields[name][key] = part
        else:
            for name in self.fields:
                self.fields[name][key] = value

    def __len__(self) -> int:
        """How many rows there are."""
        return int(self.shape[0])

    @property
    def ndim(self) -> int:
        """The number of dimensions of the whole."""
        return len(self.shape)

    @property
    def size(self) -> Any:
        """The number of its elements."""
        found = 1
        for extent in self.shape:
            found = found * extent
        return found

    def copy(self) -> Any:
        """The same in other arrays."""
        return StructuredArray({name: self.fields[name].copy() for name in self.fields}, self.shape)
