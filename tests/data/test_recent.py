"""What was used last is kept, and never more than the limit."""

from regard.data.recent import Recent


def test_the_longest_unused_is_forgotten_first() -> None:
    recent = Recent[str](3)
    for key in "abc":
        recent.put(key, key.upper(), 1)
    assert recent.get("a") == "A"
    recent.put("d", "D", 1)
    assert [recent.get(key) for key in "abcd"] == ["A", None, "C", "D"]


def test_heavy_ones_push_out_several_and_too_heavy_ones_are_not_kept() -> None:
    recent = Recent[int](10)
    for key in range(5):
        recent.put(key, key, 2)
    recent.put("heavy", 9, 7)
    assert [recent.get(key) for key in (2, 3, 4, "heavy")] == [None, None, 4, 9]
    recent.put("giant", 1, 11)
    assert (recent.get("giant"), len(recent), recent.weight) == (None, 2, 9)


def test_a_key_that_comes_again_weighs_once() -> None:
    recent = Recent[int](10)
    for value in range(100):
        recent.put("same", value, 4)
    assert (recent.get("same"), recent.weight, len(recent)) == (99, 4, 1)


def test_a_limit_of_nothing_keeps_nothing() -> None:
    recent = Recent[int](0)
    recent.put("a", 1, 1)
    assert recent.get("a") is None
