"""Where the packages live; everything else is in pyproject.toml.

`solvers/` and `frontend/` are the packages `distspmd.solvers` and `distspmd.frontend`. The links of
the same names in `distspmd/` make a checkout look as an installed package does.
"""

from setuptools import find_packages, setup

HOME = {"distspmd": "distspmd", "distspmd.solvers": "solvers", "distspmd.frontend": "frontend"}


def packages() -> list[str]:
    found = {home: find_packages(home, exclude=["solvers*", "frontend*"]) for home in HOME.values()}
    return [*HOME, *(f"{package}.{sub}" for package, home in HOME.items() for sub in found[home])]


setup(
    packages=packages(),
    package_dir=HOME,
    include_package_data=False,
    package_data={
        "distspmd": [
            "py.typed",
            "dace_compat/*.js",
            "runtime/*.sh",
            "runtime/include/distspmd/**/*.hpp",
            "runtime/emulation/*",
        ]
    },
)
