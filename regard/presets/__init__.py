"""One TOML file for each system of the lineage, and for the papers' own sizes."""
