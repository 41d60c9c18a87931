"""Ten small models and what was measured on them: a page for each system of the lineage.

pages.py    what each page says, how small its model is, and which curve it shows
curves.py   models → one measured or counted curve for each page
make.py     nothing in, ten trained models and lesson.json out
kept.py     the lesson that is shipped in models/, read again
"""
