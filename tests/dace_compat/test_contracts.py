"""What this package relies on in DaCe beyond its documented interface, one contract each.

A contract that fails says "DaCe changed X", what we rely on, and where it is used.
"""

from __future__ import annotations

import ast
import copy
import importlib.util
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dace
import dace.autodiff.analysis
import numpy as np
import pytest
from dace import config, serialize, subsets
from dace.codegen import compiler, compiler_family
from dace.codegen.targets import cpp
from dace.codegen.targets.cpu import CPUCodeGen
from dace.frontend.common.op_repository import Replacements
from dace.frontend.python import newast
from dace.frontend.python.cached_program import DaceProgramCache
from dace.frontend.python.memlet_parser import MemletExpr
from dace.frontend.python.newast import ProgramVisitor
from dace.frontend.python.parser import DaceProgram
from dace.libraries import blas, linalg, standard
from dace.libraries.blas.environments import openblas
from dace.libraries.comm.nodes.node import CommNode
from dace.libraries.standard.helper import broadcast_indices
from dace.properties import LambdaProperty
from dace.sdfg.graph import OrderedDiGraph
from dace.transformation.dataflow import MapFusionVertical
from dace.transformation.dataflow.map_fusion_helper import find_parameter_remapping
from dace.transformation.helpers import state_fission
from dace.transformation.interstate import InlineMultistateSDFG
from dace.transformation.passes.analysis import loop_analysis

ROOT = Path(__file__).resolve().parent.parent.parent


def takes(function: Callable[..., Any], *names: str) -> bool:
    """Whether a function has parameters of these names."""
    return set(names) <= inspect.signature(function).parameters.keys()


def in_order(function: Callable[..., Any], *names: str) -> bool:
    """Whether a function begins with parameters of these names."""
    return tuple(inspect.signature(function).parameters)[: len(names)] == names


@dace.program
def scaled(x: dace.float64[4, 3]):
    for i, j in dace.map[0:4, 0:3]:
        x[i, j] = x[i, j] * 2


def graph_of_nodes() -> bool:
    graph: Any = OrderedDiGraph()
    graph.add_edge("a", "b", None)
    return list(graph._nodes) == ["a", "b"] and not graph._nodes["b"][1] and graph._nodes["a"][1]


def slices_squeeze() -> bool:
    subset = subsets.Range([(0, 0, 1), (2, 5, 1), (3, 3, 1)])
    return subset.squeeze([0]) == [0, 1] and str(subset) == "0, 0:4"


def original_of_einsum() -> bool:
    return Replacements.get("numpy.einsum").__module__.startswith("dace.")


def lines_of_a_program() -> bool:
    info = scaled.to_sdfg().debuginfo
    first = inspect.getsourcelines(scaled.f)[1]
    return (info.filename, info.start_line) == (__file__, first) and info.end_line >= first + 3


def source_of_a_program() -> bool:
    text = copy.deepcopy(scaled.to_sdfg()).sourcecode["code"]
    return "def scaled" in text


def kept_where_it_is_asked_for() -> bool:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DACE_BUILD_CACHE_DIR", "/somewhere/else")
        return compiler.build_cache_root().startswith("/somewhere/else/")


def cache_of_a_program() -> Any:
    program = dace.program(scaled.f)
    before = program._cache
    assert isinstance(before, DaceProgramCache)
    return DaceProgramCache(program._eval_closure)


def names_by_python() -> bool:
    sdfg = scaled.to_sdfg()
    (entry,) = (n for n, _ in sdfg.all_nodes_recursive() if isinstance(n, dace.nodes.MapEntry))
    return entry.map.debuginfo.start_line == sdfg.debuginfo.start_line + 2


def global_indices() -> bool:
    array = dace.data.Array(dace.float64, [4], offset=[-8])
    return subsets.Range.from_array(array).ranges[0][:2] == (8, 11)


VISITOR = "dace_compat/numpy_visitor.py"
PARSER = "dace_compat/numpy_parser.py"
CONTRACTS: list[tuple[str, str, str, Callable[[], Any]]] = [
    (
        "OrderedDiGraph._nodes",
        "a dictionary of nodes, in order, with the edges that enter and leave each",
        "dace_compat/fast_graphs.py",
        graph_of_nodes,
    ),
    (
        "Replacements",
        "tables _rep, _method_rep and _ufunc_rep of functions by name",
        PARSER,
        lambda: (
            {"numpy.sum", "numpy.einsum"} <= Replacements._rep.keys()
            and {("Array", "astype"), ("View", "sum")} <= Replacements._method_rep.keys()
            and "reduce" in Replacements._ufunc_rep
        ),
    ),
    (
        "Replacements.get",
        "the tables have what DaCe registers, and nothing of ours outside of parsing",
        PARSER,
        original_of_einsum,
    ),
    (
        "newast.ProgramVisitor",
        "looked up in its module whenever a program is parsed",
        PARSER,
        lambda: "ProgramVisitor(" in inspect.getsource(newast.parse_dace_program),
    ),
    (
        "DaceProgram._generate_pdp",
        "parses all programs, also those that others call",
        PARSER,
        lambda: "_generate_pdp" in inspect.getsource(DaceProgram._parse),
    ),
    (
        "DaceProgram._cache",
        "what was parsed before, made by DaceProgramCache(_eval_closure)",
        PARSER,
        lambda: cache_of_a_program() is not None,
    ),
    (
        "dependency_analysis",
        "of dace.autodiff.analysis: container -> those that it depends on, from an SDFG",
        PARSER,
        lambda: in_order(dace.autodiff.analysis.dependency_analysis, "sdfg"),
    ),
    (
        "ProgramVisitor._add_state",
        "adds a state behind what was parsed, under a label",
        PARSER,
        lambda: in_order(ProgramVisitor._add_state, "self", "label"),
    ),
    (
        "ProgramVisitor._visit_assign",
        "visits each assignment",
        VISITOR,
        lambda: in_order(
            ProgramVisitor._visit_assign,
            *("self", "node", "node_target", "op", "dtype", "is_return"),
        ),
    ),
    (
        "ProgramVisitor._add_assignment",
        "writes a value to (container, subset)",
        VISITOR,
        lambda: in_order(
            ProgramVisitor._add_assignment,
            *("self", "node", "target", "operand", "op", "boolarr", "indirect_indices"),
        ),
    ),
    (
        "ProgramVisitor._add_aug_assignment",
        "changes (container, subset) by a value",
        VISITOR,
        lambda: in_order(
            ProgramVisitor._add_aug_assignment,
            *("self", "node", "rtarget", "wtarget", "operand", "op", "boolarr"),
            "indirect_indices",
        ),
    ),
    (
        "ProgramVisitor._add_read_slice",
        "reads the subset of an expression, squeezed",
        VISITOR,
        lambda: (
            in_order(ProgramVisitor._add_read_slice, "self", "array", "node", "expr")
            and "squeeze(ignore_indices" in inspect.getsource(ProgramVisitor._add_read_slice)
        ),
    ),
    (
        "MemletExpr",
        "has the subset of a subscript, and arrdims, its arrays of indices",
        VISITOR,
        lambda: {"subset", "arrdims"} <= inspect.signature(MemletExpr).parameters.keys(),
    ),
    ("Range.squeeze", "keeps the dimensions that are given", VISITOR, slices_squeeze),
    (
        "SDFG.sourcecode",
        "of a parsed program: the text of its function; copies have it too",
        "passes/normalize/parsed_by_dace.py",
        source_of_a_program,
    ),
    (
        "SDFG.debuginfo",
        "of a parsed program: its file, its first and its last line",
        "passes/normalize/parsed_by_dace.py",
        lines_of_a_program,
    ),
    (
        "debuginfo of maps",
        "has the line of the user's program",
        "analysis/iteration_spaces.py",
        names_by_python,
    ),
    (
        "Array.offset",
        "is subtracted from indices, so that a tile has the indices of its array",
        "passes/tiles.py",
        global_indices,
    ),
    (
        "the OpenBLAS environment",
        "its packages, headers and libraries are attributes of its class",
        "dace_compat/settings.py",
        lambda: (
            {"cmake_packages", "cmake_libraries", "cmake_includes", "headers"}
            <= vars(openblas.OpenBLAS).keys()
        ),
    ),
    (
        "_dace_file_path",
        "of an environment: the file of its class",
        "dace_compat/environments.py",
        lambda: Path(openblas.OpenBLAS._dace_file_path) == Path(inspect.getfile(openblas)),
    ),
    (
        "settings compiler.lineinfo and store_history",
        "can be set for a time",
        "dace_compat/settings.py",
        lambda: (
            config.Config.get("compiler", "lineinfo") is not None
            and config.Config.get("store_history") is not None
        ),
    ),
    (
        "commands of the compiler",
        "build_type_flags and cache_key of codegen.compiler, and cpu_args",
        "codegen/compile_program.py",
        lambda: (
            isinstance(compiler.build_type_flags(), list)
            and compiler.cache_key("a") != compiler.cache_key("b")
            and isinstance(compiler_family.cpu_args(), str)
        ),
    ),
    (
        "the folder of what builds share",
        "build_cache_root of codegen.compiler is below DACE_BUILD_CACHE_DIR",
        "dace_compat/settings.py",
        kept_where_it_is_asked_for,
    ),
    (
        "Config.cfg_filename",
        "the file of the settings, or None",
        "dace_compat/settings.py",
        lambda: isinstance(config.Config.cfg_filename(), str | None),
    ),
    (
        "CPUCodeGen._generate_Tasklet",
        "generates a tasklet, and subclasses of it by their names",
        "dace_compat/tasklet_kinds.py",
        lambda: "_generate_" in inspect.getsource(CPUCodeGen.generate_node),
    ),
    (
        "Tasklet.from_json",
        "reads all of the type Tasklet, and classpath names the class of a library node",
        "dace_compat/tasklet_kinds.py",
        lambda: (
            serialize.get_serializer("Tasklet") is dace.nodes.Tasklet
            and "classpath" in inspect.getsource(dace.nodes.LibraryNode.to_json)
        ),
    ),
    (
        "cpp.unparse_cr",
        "the C++ function of a conflict resolution",
        "codegen/user_reductions.py",
        lambda: (
            "max"
            in cpp.unparse_cr(
                dace.SDFG("s"), LambdaProperty.from_string("lambda a, b: max(a, b)"), dace.float64
            )
        ),
    ),
    (
        "MapFusionVertical",
        "can_be_applied_to and apply_to with the nodes by name",
        "passes/fuse_maps.py",
        lambda: (
            {"first_map_exit", "array", "second_map_entry"} <= vars(MapFusionVertical).keys()
            and in_order(find_parameter_remapping, "first_map", "second_map")
        ),
    ),
    (
        "InlineMultistateSDFG",
        "inlines the node that it calls nested_sdfg",
        "passes/normalize/inline.py",
        lambda: "nested_sdfg" in vars(InlineMultistateSDFG),
    ),
    (
        "state_fission",
        "takes allow_isolated_nodes",
        "passes/autodiff/backward.py",
        lambda: takes(state_fission, "allow_isolated_nodes"),
    ),
    (
        "loop_analysis",
        "begin, end and stride of a loop",
        "analysis/accesses.py",
        lambda: all(
            callable(getattr(loop_analysis, name))
            for name in ("get_init_assignment", "get_loop_end", "get_loop_stride")
        ),
    ),
    (
        "broadcast_indices",
        "indices of an operand of np.where",
        "passes/normalize/single_operations.py",
        lambda: len(broadcast_indices([1, 3], [4, 3])) == 2,
    ),
    (
        "library nodes",
        "are extended by register_implementation, and keep the default that they had",
        "nodes/blas_products.py",
        lambda: all(
            hasattr(node, "register_implementation")
            and not str(node.default_implementation).startswith("distspmd")
            for node in (blas.MatMul, blas.Gemm, linalg.Solve, standard.Reduce)
        ),
    ),
    (
        "CPUCodeGen.write_and_resolve_expr",
        "names each function of a conflict resolution alike",
        "dace_compat/resolutions_apart.py",
        lambda: (
            "const auto __dace__reduction_lambda ="
            in inspect.getsource(CPUCodeGen.write_and_resolve_expr)
        ),
    ),
    (
        "CommNode",
        "is a library node that is not wrapped into kernels",
        "nodes/distributed_memlet.py",
        lambda: issubclass(CommNode, dace.nodes.LibraryNode),
    ),
]


IDS = [f"{name}-{used}" for name, _, used, _ in CONTRACTS]


@pytest.mark.parametrize(("name", "relied", "used", "holds"), CONTRACTS, ids=IDS)
def test_dace_is_as_we_rely_on(name: str, relied: str, used: str, holds: Callable[[], Any]) -> None:
    assert (ROOT / "distspmd" / used).is_file(), used
    said = f"DaCe changed {name}: we rely on it: {relied}; used in distspmd/{used}"
    try:
        kept = holds()
    except Exception as problem:
        pytest.fail(f"{said} ({type(problem).__name__}: {problem})")
    assert kept, said


def modules() -> list[Path]:
    return [*(ROOT / "distspmd").rglob("*.py")]


def test_all_that_we_import_of_dace_is_there() -> None:
    missing = []
    for file in modules():
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dace":
                module = importlib.import_module(str(node.module))
                missing += [
                    f"DaCe changed {node.module}.{alias.name}: {file.relative_to(ROOT)} imports it"
                    for alias in node.names
                    if not hasattr(module, alias.name)
                    and importlib.util.find_spec(f"{node.module}.{alias.name}") is None
                ]
    assert not missing


def test_private_parts_of_dace_are_used_in_dace_compat_alone() -> None:
    private = {
        name
        for holder in (dace.SDFG, dace.SDFGState, DaceProgram, ProgramVisitor, Replacements)
        for name in dir(holder)
        if name.startswith("_") and not name.startswith("__") and not name.startswith("_repr_")
    } | {"_dace_file_path", "_nodes", "_edges"}
    found = []
    for file in modules():
        own = {
            node.name
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        }
        if "dace_compat" in file.parts:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in private - own:
                of_itself = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
                if not of_itself:
                    found.append(f"{file.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}")
    assert not found


def test_numpy_functions_of_programs_run_as_python() -> None:
    """The oracle of ``check`` runs ``dace.map`` in Python."""
    x = np.ones((4, 3))
    scaled.f(x)
    assert (x == 2).all(), "DaCe changed dace.map: it does not iterate in Python"
