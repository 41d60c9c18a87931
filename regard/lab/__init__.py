"""A config or a model in, the claims made about it out, measured."""
