"""Hundreds of requests drawn from the server's own description: none fails, all answers are as described."""

from pathlib import Path

from bench.fuzz import fuzz
from regard.serve.app import make_app
from regard.serve.desk import Desk
from regard.serve.guard import Allowed


def test_drawn_requests_are_answered_as_described(copy_folder: Path) -> None:
    desk = Desk([copy_folder], print)
    try:
        tried, failures = fuzz(make_app(desk, Allowed()), 50, seed=1)
    finally:
        desk.end()
    assert failures == []
    assert tried >= 200
