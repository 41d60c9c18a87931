"""Proposals: the same from the same, never twice, within bounds; and without optuna a word that helps."""

import pytest

from regard import config
from regard.errors import UsageError
from regard.tune import propose as proposing
from regard.tune.propose import Known, propose, refuse_without_optuna, worths
from regard.tune.space import Setting, Space, space

SPACE = space(config.resolve(), {}, {"transformer": config.resolve("transformer")})


def test_the_same_from_the_same() -> None:
    known = [Known(SPACE.start, 10.0)]
    assert propose(SPACE, known, 1) == propose(SPACE, known, 1)
    assert propose(SPACE, known, 1) != propose(SPACE, known, 2)


def test_never_twice_and_within_bounds() -> None:
    known = [Known(SPACE.start, 0.0)]
    for number in range(11):
        values = propose(SPACE, known, 0)
        assert values is not None
        assert values not in [each.values for each in known]
        for setting in SPACE.settings:
            value = values[setting.name]
            if setting.choices:
                assert value in setting.choices
            else:
                assert setting.low <= float(value) <= setting.high
        known.append(Known(values, None if number % 3 == 0 else float(number)))


def test_nothing_is_left() -> None:
    small = Space(SPACE.first, {}, (Setting("copy", False, (False, True)),), lambda c: None)
    first = Known(small.start, 1.0)
    second = propose(small, [first], 0)
    assert second == {"copy": True}
    assert propose(small, [first, Known(second, 2.0)], 0) is None


def test_what_failed_is_worth_less_than_all_others() -> None:
    known = [Known({}, -3.0), Known({}, None), Known({}, 5.0), Known({}, float("-inf"))]
    assert worths(known) == [-3.0, -4.0, 5.0, -4.0]
    assert worths([Known({}, None)]) == [-1.0]


def test_without_optuna(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposing, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r'pip install "regard\[tune\]"'):
        refuse_without_optuna()
