"""Errors of torch while a function is traced, as the user can act on them."""

from __future__ import annotations

UNKNOWN = (
    "the function uses a tensor that is neither an argument nor where it can be found: in a "
    "module, a variable, a list, a dictionary, or an attribute. Register it: "
    "module.register_buffer(name, tensor), or pass it."
)


def is_of_data(error: Exception) -> bool:
    """Whether values of tensors would decide what is run, or a shape."""
    name = type(error).__name__
    return "DataDependent" in name or "GuardOn" in name or "data-dependent" in str(error)


def explained(error: Exception) -> str:
    """Why a function cannot be traced, and what to write."""
    name = type(error).__name__
    text = str(error).strip().split("\n")[0]
    if is_of_data(error):
        return (
            "the function's control flow, or a shape in it, depends on the values of tensors "
            f"({name}: {text}). Write it without: torch.where for a choice, masks for a shape."
        )
    if "convert all Tensors to FakeTensors" in text:
        return UNKNOWN
    if "set the storage" in text:
        return (
            "the function gives a tensor other memory (resize_, set_, or an out= that does not "
            "fit), which no traced program can. Write it with new tensors, as torch.zeros makes."
        )
    if "no autograd formula" in text:
        operator = text.partition("through ")[2].partition(".default")[0].replace(".", "::")
        return (
            f"the gradient of the custom operator {operator} is not known. Give it one, with "
            f"torch.library.register_autograd({operator!r}, backward, setup_context=...): what "
            "backward calls is traced; register custom operators in it as this one is, by "
            "distspmd.frontend.register_operator."
        )
    if "no fake impl registered" in text:
        operator = text.partition("CustomOpDef(")[2].partition(")")[0]
        return (
            f"the shapes of what the custom operator {operator} returns are not known. Say them: "
            f"torch.library.register_fake({operator!r}, function), where the function returns "
            "empty tensors, as torch.compile needs it, too."
        )
    if "token for effect" in text:
        return (
            f"the operator {text.rsplit(' ', 1)[-1]}, a part of what the function calls, looks at "
            "values while it runs, which no program does."
        )
    return f"the function cannot be traced: {name}: {text}"
