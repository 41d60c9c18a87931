"""The engine's inner loop, built with whatever compiler there is; without one, regard decodes in torch."""

from setuptools import Extension, setup

# gcc warns of its own vector header.
FLAGS = ["-O3", "-g0", "-std=c++17", "-pthread", "-fvisibility=default", "-Wno-psabi", "-Wno-uninitialized",
         "-Wno-maybe-uninitialized"]  # fmt: skip

setup(
    ext_modules=[
        Extension(
            "regard.engine.native",
            ["regard/engine/native.cpp"],
            depends=["regard/engine/kernels.inc"],
            extra_compile_args=FLAGS,
            extra_link_args=["-pthread"],
            optional=True,
        )
    ]
)
