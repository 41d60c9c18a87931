"""A file and minutes in, a model out whose settings were searched for: many short runs, then one with the best."""
