"""Published models are collected where their libraries are installed: `pip install -e '.[zoo]'`."""

from importlib.util import find_spec

_ARE_INSTALLED = find_spec("transformers") and find_spec("torchvision")
collect_ignore_glob = [] if _ARE_INSTALLED else ["test_*.py"]

if _ARE_INSTALLED:
    from zoo.registry import tell_torchvision

    TORCHVISION = tell_torchvision()
