"""Public data for every task in, a figure for each out: configs beside this file, one command for all rows."""
