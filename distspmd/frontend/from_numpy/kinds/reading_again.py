"""What ends a reading of a program, so that the next one begins with it."""

from __future__ import annotations


class ReadProgramAgain(Exception):
    """What was found now had to be known from the beginning: the program is read again."""


class DrawsBefore(ReadProgramAgain):
    """A loop or branch draws first from the generator of a module."""

    def __init__(self, module: str) -> None:
        super().__init__(module)
        self.module = module


class TableChanges(ReadProgramAgain):
    """A table changes of which numbers were taken as known."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class NeedsObject(ReadProgramAgain):
    """A variable is an object of Python: all that reads it is for Python."""

    def __init__(self, file: str, line: int, name: str) -> None:
        super().__init__(name)
        self.file, self.line, self.name = file, line, name
