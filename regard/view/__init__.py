"""States in, pictures out: what a model looked at, and how its training went."""
