"""Plain values as JSON that every reader understands."""

import json
import math

import pytest

from regard.data.plain import json_text


def test_what_is_not_finite_is_null_and_all_else_stays() -> None:
    value = {"é": [1, 0.5, math.inf, (-math.inf, math.nan)], "b": {"c": math.nan, "d": "NaN", "e": None, "f": True}}
    found = json.loads(json_text(value), parse_constant=pytest.fail)
    assert found == {"é": [1, 0.5, None, [None, None]], "b": {"c": None, "d": "NaN", "e": None, "f": True}}
    assert json_text({"é": 1.5}, (",", ":")) == '{"é":1.5}'
