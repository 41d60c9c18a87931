"""A file and some presets in, one table and one page out that set them side by side; or two models and a test file.

plan.py      what is asked for → a config for each run: one task, one split, the same tokens, the same budget
runs.py      configs → model folders, by the ordinary training; what stands there already is taken
measure.py   model folders → scores with intervals, paired tests, speeds, curves by length, anatomy
show.py      all of it as lines for a terminal
page.py      … and as one HTML file
make.py      the verb
against.py   two models on one file: the paired test
"""
