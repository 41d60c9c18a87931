"""Our models in, other people's engines out; foreign names of weights are met here and nowhere else."""
