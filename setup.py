"""The extension module; everything else is in pyproject.toml."""

from Cython.Build import cythonize
from setuptools import Extension, setup

core = Extension(
    "maskwright._core",
    ["cext/_core.pyx"],
    language="c++",
    extra_compile_args=["-O3", "-std=c++17", "-g0", "-pthread"],
    extra_link_args=["-pthread"],
    include_dirs=["cext"],
    depends=["cext/cut.hpp", "cext/pool.hpp", "cext/tables.hpp"],
)

setup(ext_modules=cythonize([core], include_path=["cext"]))
