"""The passes that bring all top-level work into the form of maps and library nodes, in order."""

from __future__ import annotations

from dace import SDFG

from distspmd.passes.autodiff.backward import expand_backward, plain_parameters
from distspmd.passes.compilation import Rewrite
from distspmd.passes.normalize.callbacks import refuse_callbacks
from distspmd.passes.normalize.check_nodes import check_nodes
from distspmd.passes.normalize.compose_maps import ComposeMaps
from distspmd.passes.normalize.control_flow import control_values
from distspmd.passes.normalize.copies import copies_to_maps
from distspmd.passes.normalize.dace_fixes import correct
from distspmd.passes.normalize.inline import inline_nested
from distspmd.passes.normalize.library_nodes import expand_library_nodes
from distspmd.passes.normalize.loops_to_maps import map_loops
from distspmd.passes.normalize.parsed_by_dace import tell_misunderstood
from distspmd.passes.normalize.read_first import read_first
from distspmd.passes.normalize.single_operations import operations_to_maps
from distspmd.passes.normalize.split_reads import split_reads
from distspmd.passes.normalize.temporary_sizes import widen
from distspmd.passes.normalize.uninitialised import initialise
from distspmd.passes.normalize.unwrap_indices import unwrap_indices

NORMALIZE = (
    Rewrite("tell-misunderstood", tell_misunderstood),
    Rewrite("plain-parameters", plain_parameters),
    Rewrite("refuse-callbacks", refuse_callbacks),
    Rewrite("fix-dace", correct),
    Rewrite("read-first", read_first),
    Rewrite("initialise-accumulations", initialise),
    Rewrite("expand-library-nodes", expand_library_nodes),
    Rewrite("inline-nested", inline_nested),
    Rewrite("loops-to-maps", map_loops),
    Rewrite("widen-temporaries", widen),
    Rewrite("read-control-values", control_values),
    Rewrite("check-nodes", check_nodes),
    Rewrite("copies-to-maps", copies_to_maps),
    Rewrite("operations-to-maps", operations_to_maps),
    ComposeMaps(),
    Rewrite("unwrap-indices", unwrap_indices),
    Rewrite("split-reads", split_reads),
    Rewrite("expand-backward", expand_backward),
)


def normalize(sdfg: SDFG) -> None:
    """Normalise an SDFG in place: all of its work is in maps and library nodes afterwards.

    Raises:
        UnsupportedProgram: what cannot be partitioned, with the source line.
    """
    for step in NORMALIZE:
        step.rewrite(sdfg)
