"""A file in, a trained model out: data prepared, a loop one can read straight down, the folder written."""
