"""Examples in, what is wrong with them out: one file for each subject, each finding a frozen record."""
