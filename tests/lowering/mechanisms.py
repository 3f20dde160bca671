"""Which cases represent a mechanism of the compiler; the quick tier compiles the first of each.

The other programs are lowered, proved and simulated without a compiler; `scripts/test --all`
compiles all of them, under all schedules. A case that finds an error which plans do not show
becomes a representative.
"""

MECHANISMS = {
    "grids of one to three axes, broadcasting": """
        broadcast[__return=1x1x1]-1 broadcast[__return=2x2x2]-8 broadcast_row[y=2x2]-4
    """,
    "empty tiles, idle ranks, ranks that no grid needs": """
        column_times_row[__return=1x8]-8 tiny[__return=4]-4 one_element[__return=2x1]-3
        scalar_result[]-2 means[mean_x=1x4,mean_x_1=2x2,__return_0=3]-6
        written_from_both_ends[y=5]-6 transposed_beside[__return_1=4]-4
    """,
    "neighbouring spaces on different grids": """
        several_results[__return_0=4x1,__return_1=1x3,__return_2=2x2]-4
        result_and_in_place[y=4,__return=2]-4 chain[a=4x1,b=2x2,__return=1x4]-4
        map_chain[t.2=4,y=2]-4 looped[x=4]-4
    """,
    "element types": """
        complexes[__return_0=3x1]-3 booleans[__return_0=4]-4
        mixed_types[__return_0=3,__return_1=2]-3 unsigned[__return=3]-3 integers[__return_0=4]-4
        single[__return=2x3]-6
    """,
    "arguments that are written in place": """
        in_place[x=2x2]-4 add_to[x=4]-4 into_argument[c=2x2x1]-4 added_to_argument[c=2x2]-4
    """,
    "constants, and results that depend on no argument": """
        constant[__return_0=3,__return_1=4x1,__return_2=4]-4 eye[__return=2x2]-4
        no_iterations[y=2]-2 only_a_number[]-2
    """,
    "conditions of elements": """
        where_of_windows[__return_0=2x2,__return_1=2x1]-4 conditional[y=4]-4 masked[x=4]-4
    """,
    "writes where data choose": """
        beside_numbers[a=1x3x2]-6 columns_by_index[a=3x1]-3 source_that_moves[u=6]-6
        rows_by_index[a=3x2]-6 rows_and_columns[a=2x3]-6
        elements_by_index[y=4]-4 of_other_elements[w=2,u.2=3]-3 blocks_by_indices[a=2x2]-4
    """,
    "write conflicts: bits, quotients, functions of the program": """
        bits[both=4x1,some=1x3,odd=2x2]-4 composed[y=2x2,z=4x1]-4
        places[argmax_x=3,argmax_x.2=1x3,argmin_x=2,argmin_x.2=2x1]-3 divided[y=3x1]-3
        least_of_steps[y=2x2]-4 doubled_squares[y=3x1]-3 any_of[y=3x2]-6
    """,
    "maxima and minima, in which a NaN wins": """
        extremes[__return_0=2x2,__return_1=1x4,__return_2=2x2,min_x_0=2x2]-4
        greater_of_two[__return_0=4x1,__return_1=1x4,__return_2=2x2,__return_3=2x1]-4
        written_together[most=2x2]-4 extremes[__return_0=1x3,__return_2=1x4,min_x_0=4x1,max=1x2]-4
        extremes_of_singles[__return_0=1x4,__return_1=2x2,max_x_0=4x1]-4 greater_in_python[]-1
        saturated[y=1x4]-4 positive_in_all[y=1x4]-4
        places_of_extremes[argmax_x.2=1x4,argmin_x.2=4x1,argmax_k.2=2x1]-4
    """,
    "reductions over split dimensions": """
        sums[__return_0=4x2,__return_1=4x2,sum_x_1=4x2]-8
        logical[__return_0=1x3,__return_1=1x3,all_expr_0=1x3,any_expr_0=1x3]-3
        products[__return_0=2x3,__return_1=2x3]-6
        cube[__return_0=2x2x2,__return_1=2x2x2,__return_2=2x2x2]-8
        of_types[__return_0=3x1,max_y=3,sum_z=2,reduce_w=4,min_x=2x2]-4
    """,
    "reductions that continue what was there": """
        accumulated[y=2x2]-4 histogram[h=4]-4 restarted[__return.3=2x2]-4
        twice_from_zeros[__return.2=2x2,__return.3=1x4]-4 to_one_element[y=4]-4
        sums_of_steps[__return.2=6x1,__return.3=6x1]-6 accumulated_then_used[y.2=2x2]-4
        initialised_in_part[__return=4]-4
    """,
    "statistics: reductions that feed element-wise spaces": """
        centred[m=2]-2 normalised[s=2x2]-4 moments[variance=3x1]-3
    """,
    "products of matrices that BLAS computes": """
        matmul[_MatMult_=2x2x2]-8 gram[__return=2x1x2]-4 of_integers[__return=2x1x2]-4
        matmul[_MatMult_=1x1x1]-1 matmul[_MatMult_=2x2x1]-6 transposed_left[__return=2x2x2]-8
        thin[__return=1x1x2]-2 of_part[c=1x1x3]-3 in_chain[a_matmul_b=2x2x1,__return=1x2x2]-4
    """,
    "batches of products": """
        batched[__return=2x2x1x2]-8 nested_batches[__return=1x1x2x2x2]-8
        broadcast_batch[__return=2x1x2x1]-4
    """,
    "products with vectors": """
        matrix_vector[__return=2x3]-6 vector_matrix[__return=2x2]-4 inner[__return=3]-3
        complex_vectors[__return_0=2x2,__return_1=2,__return_2=3]-4
        one_by_one[__return_0=1x1x4,__return_1=1x1x1,__return_2=2x2x1]-4
    """,
    "solutions of linear systems": """
        solved[__return=4]-4 solved_windows[c_slice=2]-2
    """,
    "einsums": """
        with_ellipsis[__return=2x3x1x1x1]-6 projection[__return=2x2x2]-8 of_mixed[__return=2x1x2]-4
        gradient_of_weights[__return=2x2x2]-8 implicit[__return_0=2x1x2,__return_1=2x2]-4
        of_six[__return=3x2]-6 summed_alone[__return=2x2]-4 batched_einsum[__return=1x2x1x2]-4
        contracted_over_two[__return=1x2x1x2]-4
    """,
    "attention": """
        attention[scores=2x3,__return=4]-6 attention[s=2x2x1,out=2x1x2]-4
        heads[x_matmul_w=2x2x1]-4
    """,
    "operands of sums that are added before they move": """
        products_added[T_matmul_x=1x8,T_matmul_y=1x8]-8 weighed[p=1x6,q=1x6]-6
        not_linear[p=1x4,q=1x4]-4 moved_and_added[p=1x2x2,q=1x2x2]-4
        tiles_of_sums[sum_a=1x3x2,sum_b=1x3x2]-6
    """,
    "reads and writes of one container that must not overtake": """
        read_after_write[y=4x1,y.2=1x4]-4 guarded_in_place[x=4x1,x.2=1x4,x.3=2x2]-4
        odd_from_even[x=4]-4 read_before_and_after[a=4,x=3,y=2]-4 overwritten[y.2=2,y.3=4]-4
        swapped[t=2,y=4]-4
    """,
    "arrays of five dimensions, diagonals, several writers": """
        five_dimensions[__return_0=2x1x1x3x1,__return_1=1x1x2x1x2]-6 diagonals[y=2x2]-4
        rows_and_columns[__return.2=2x2]-4 many_scalars[]-3
    """,
    "loops whose bodies touch parts": """
        tails[y=3,x=4]-4 eliminated[a=4,a.2=4x1]-4 growing[y=4]-4 eliminated[a.2=2x3]-6
        triangle[x_slice_times_t=4]-4 corner[x=2x2]-4 columns_backwards[x=4]-4
        two_triangles[b_slice=4x1]-4 cholesky[a.2=4,a.3=4x1]-4 sums_of_parts[y_slice=2x2]-4
    """,
    "arrays that live elsewhere while a loop runs": """
        sweeps[u=4,u.2=4]-4 inner_sweeps[v=3,u=3]-3 left_early[u=3,u.2=3,u.3=3]-3
    """,
    "halos that move in place": """
        five_points[y=3x2]-6 jacobi[y=3x2,x=3x2]-6 stencil_2d[y=4x2]-8 wide_and_narrow[x=4]-4
    """,
    "control flow that reads data": """
        until_small[b=4]-4 branches[__return=3]-3 counted[a=4]-6 skips_and_stops[__return=3]-3
        early[__return=3]-3 rows_by_index[__return=3]-3
    """,
    "nested functions": """
        function_of_rows[a_0=4]-4 function_to_and_fro[y=4,x=3]-4 called[y=4]-4 nested_stencil[y=4]-4
    """,
    "affine, stepped, reversed and divided indices": """
        triangular[o=4]-4 stepped_writes[y=4]-4 modulo[y=4]-4 index_value[y=1x8]-8 fir[y=2x2]-4
        stepped[y=8]-8 reversed_writes[y=4]-4 halved[y=4]-4 flattened[y=4x1]-4 offset_range[y=4]-4
        rolled[y=4]-4
    """,
    "loops and temporaries inside of maps": """
        local_loop[y=4]-4 local_array[y=4]-4 row_slices[y=4]-4 pairs[y=4]-4
    """,
    "elements that are fetched by indices in data": """
        spmv[y=4]-4 weights_in_bins[h=4]-4 moving_indices[y=4]-4 spmv_in_maps[__return=6]-6
        spmv_in_a_loop[__return=3]-3 table_rows[out=8]-8 chosen_columns[__return=2x3]-6
        index_of_indices[y=3]-3 follows_itself[y=3]-3 by_entries[y=6]-6
    """,
    "views, reshapes and new axes": """
        kept_dimension[e=2x2]-4 reshaped[__return_0=2x3,__return_1=3]-6 result_reshaped[y=2x2]-4
        new_axis[__return=2x2]-4 shifted_onto_itself[x=4,y=2x2]-4
        transposed[__return_0=3x1x1,__return_1=1x2x2]-4 shifted_in_a_circle[__return=4]-4
    """,
    "copies, concatenations, results that are arguments": """
        concatenated[__return_0=2]-3 stacked[__return=4x1]-4 copied[__return.2=4x1]-4
        result_is_argument[]-2 slices[__return_0=2x2]-4 unused[__return=3]-3
    """,
}
"""Mechanism -> names of the cases that represent it."""

KERNELS = {
    "stencils over time": "jacobi_2d heat_3d fdtd_2d seidel_2d",
    "recurrences along one dimension": "adi deriche",
    "chains of products": "k3mm gemver doitgen",
    "triangular factorisations": "cholesky lu_by_columns gramschmidt",
    "statistics over both dimensions": "correlation floyd_warshall azimint_hist",
    "networks": "lenet softmax",
    "sparse and irregular": "spmv scattering_self_energies",
}
"""Mechanism -> kernels that represent it, of which the quick tier compiles two."""

FIRST = 2
"""How many representatives of a mechanism are compiled in the quick tier."""

REPRESENTATIVES = frozenset(name for names in MECHANISMS.values() for name in names.split())
COMPILED = frozenset(name for names in MECHANISMS.values() for name in names.split()[:FIRST])
COMPILED_KERNELS = frozenset(name for names in KERNELS.values() for name in names.split()[:2])


def as_table() -> str:
    """Both as a table for a page."""
    rows = [
        f"| {mechanism} | {', '.join(f'`{name}`' for name in names.split())} |"
        for mechanism, names in (MECHANISMS | KERNELS).items()
    ]
    return "\n".join(["| mechanism | represented by |", "|---|---|", *rows])
