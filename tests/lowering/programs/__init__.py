"""The programs that the lowering is tested on, by what they try."""

from lowering.harness import Case
from lowering.programs import (
    conflicts,
    contractions,
    control,
    elementwise,
    extrema,
    functions,
    hazards,
    indices,
    irregular,
    loops,
    owners,
    partial_sums,
    phases,
    products,
    reductions,
    several,
    views,
)

CASES: list[Case] = [
    case
    for module in (
        conflicts,
        contractions,
        control,
        elementwise,
        extrema,
        functions,
        hazards,
        loops,
        reductions,
        products,
        indices,
        irregular,
        owners,
        several,
        views,
        partial_sums,
        phases,
    )
    for case in module.CASES
]
