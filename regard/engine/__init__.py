"""A model in, the same model as a list of instructions out, and a loop in C++ that carries them out.

`lower` translates, `library` finds what was built from native.cpp, `engine` reads, steps and searches. Where it could
not be built, or where a model has a part that it does not know, the model itself decodes, step by step in torch.
"""
