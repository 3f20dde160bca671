"""The command ``distspmd``: the functions of the package, on ``file.py:function``, from a shell."""

from distspmd.cli.command import main

__all__ = ["main"]
