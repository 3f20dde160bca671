"""A lowered SDFG carries the record of its lowering, also where DaCe saves it by itself."""

from __future__ import annotations

from typing import Any

from dace import SDFG, dtypes
from dace.properties import CodeBlock

import distspmd
from distspmd.lowering import ATTRIBUTE, RECORD


class _Record(CodeBlock):
    """Code that no target generates: the record as a text, which is made when it is written."""

    def __init__(self, lowering: Any) -> None:
        self._lowering = lowering
        super().__init__("", dtypes.Language.CPP)

    @property
    def code(self) -> str:
        """The text."""
        return str(distspmd.saved.record_text(self._lowering))

    @code.setter
    def code(self, _: str) -> None: ...

    def __deepcopy__(self, memo: Any) -> _Record:
        return self


def carry(sdfg: SDFG, lowering: Any) -> None:
    """Let an SDFG carry what was decided of it."""
    setattr(sdfg, ATTRIBUTE, lowering)
    sdfg.global_code[RECORD] = _Record(lowering)


def without_record(program: SDFG) -> None:
    """Take the text of the record out of a copy that becomes code."""
    program.global_code.pop(RECORD, None)
