"""Requests in, answers out: models behind an HTTP API and a page.

limits.py      every limit of the server, on one page
refusal.py     what is refused, and how it is told
schema.py      what is asked and what is answered, as records
meter.py       what was counted, for Prometheus
shelf.py       folders → models by name, loaded when first asked for, replaced when their folder changes
ask.py         a record and a model → an answer
worker.py      one thread for each model; what waits together is answered together
desk.py        requests are handed to the thread of their model and waited for
guard.py       who may ask at all, and how long they may take about it
page.py        the page's files, and the API's description as a page
app.py         routes
connection.py  hypercorn's connections, with clocks of ours
run.py         a socket, signals, and an end that loses nothing
"""
