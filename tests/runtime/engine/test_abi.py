"""The table of the engine has the functions of the header, with as many arguments each."""

import re

from distspmd.runtime.engine.compile_runtime import INCLUDE
from distspmd.runtime.engine.engine import ABI


def test_the_table_has_what_the_header_exports():
    text = (INCLUDE / "distspmd" / "api" / "runtime.hpp").read_text()
    exported = {
        name: (result.strip() == "void", arguments.count(",") + 1)
        for result, name, arguments in re.findall(
            r"^DISTSPMD_EXPORT ([^(]*?)distspmd_(\w+)\(([^)]*)\)", text, re.MULTILINE
        )
    }
    table = {name: (result is None, len(arguments)) for name, (result, arguments) in ABI.items()}
    assert table == exported
