"""The engine's inner loop, built with whatever compiler there is; without one, regard decodes in torch."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "regard.engine.native",
            ["regard/engine/native.cpp"],
            depends=["regard/engine/kernels.inc"],
            extra_compile_args=["-O3", "-g0", "-std=c++17", "-pthread", "-Wno-psabi", "-fvisibility=default"],
            extra_link_args=["-pthread"],
            optional=True,
        )
    ]
)
