"""The extension modules; everything else is in pyproject.toml."""

from Cython.Build import cythonize
from setuptools import Extension, setup


def extension(name: str, *headers: str) -> Extension:
    return Extension(
        f"maskwright.{name}",
        [f"cext/{name}.pyx"],
        language="c++",
        extra_compile_args=["-O3", "-std=c++17", "-g0", "-pthread"],
        extra_link_args=["-pthread"],
        include_dirs=["cext"],
        depends=[f"cext/{header}.hpp" for header in headers],
    )


extensions = [
    extension("_core", "attempt", "cut", "pool", "rows", "tables"),
    extension("_subsets", "subsets"),
]
setup(ext_modules=cythonize(extensions, include_path=["cext"]))
