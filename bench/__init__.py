"""Measurements, each one command; figures stand in README.md beside the command that made them."""
