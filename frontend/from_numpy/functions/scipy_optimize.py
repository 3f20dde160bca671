"""``scipy.optimize``: zeros and minima of functions, as loops of the program."""

from __future__ import annotations

from distspmd.frontend.from_numpy.functions.registry import refused_by_name
from distspmd.frontend.from_numpy.functions.written_out import read_in_place
from distspmd.frontend.from_numpy.library import minima, roots, secants

read_in_place(
    "scipy.optimize",
    *(roots.brentq, roots.brenth, roots.bisect, roots.ridder, secants.newton),
    *(minima.minimize_scalar, minima.brent, minima.golden, minima.fminbound, minima.bracket),
)
refused_by_name(
    "scipy.optimize",
    *("minimize", "fmin", "fmin_bfgs", "fmin_cg", "fmin_powell", "fmin_l_bfgs_b", "fmin_slsqp"),
    instead="write the loop of the method, as of gradient descent or of Newton's steps",
)
refused_by_name(
    "scipy.optimize",
    *("curve_fit", "least_squares", "leastsq"),
    instead="write the loop of Gauss-Newton steps with np.linalg.lstsq, or np.polyfit",
)
refused_by_name(
    "scipy.optimize",
    *("root", "fsolve"),
    instead="write the loop of Newton steps with np.linalg.solve; one number has brentq and newton",
)
refused_by_name(
    "scipy.optimize",
    *("linprog", "milp", "linear_sum_assignment", "differential_evolution", "basinhopping"),
    *("dual_annealing", "shgo", "brute", "nnls"),
    instead="compute it before the program, and pass it",
)
