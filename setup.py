"""What is built with whatever compiler there is; without one, torch computes it.

The engine's inner loop decodes, and `onepass` is what surrounds the matrix products of a training step.
"""

from setuptools import Extension, setup

# gcc warns of its own vector header.
FLAGS = ["-O3", "-g0", "-std=c++17", "-pthread", "-fvisibility=default", "-Wno-psabi", "-Wno-uninitialized",
         "-Wno-maybe-uninitialized"]  # fmt: skip


def built(name: str, source: str, depends: list[str], threads: str) -> Extension:
    return Extension(name, [source], depends=depends, extra_compile_args=[*FLAGS, threads], extra_link_args=[threads],
                     optional=True)  # fmt: skip


LANES = "regard/engine/lanes.inc"
setup(
    ext_modules=[
        built("regard.engine.native", "regard/engine/native.cpp", ["regard/engine/kernels.inc", LANES], "-pthread"),
        built("regard.layers.onepass", "regard/layers/onepass.cpp", ["regard/layers/onepass.inc", LANES], "-fopenmp"),
    ]
)
