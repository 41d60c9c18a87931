"""Labels that are nearly the same, or have hardly an example."""

from regard.data.doctor.labels import find_labels
from tests.data.doctor.rows import kinds, only, sight

SOUND = [(f"text {i}", "good" if i % 2 else "bad") for i in range(20)]


def test_labels_that_differ_in_case() -> None:
    found = only(list(find_labels(sight([*SOUND, *[("x", "Good")] * 5], "classify"))))
    assert (found.kind, found.level, found.count, found.lines[0]) == ("labels alike", "trouble", 5, 21)
    assert found.example == '"Good" × 5 beside "good" × 10'


def test_rare_labels() -> None:
    found = only(list(find_labels(sight([*SOUND, ("x", "odd")], "classify"))))
    assert (found.kind, found.count, found.lines) == ("rare labels", 1, (21,))


def test_labels_of_tokens() -> None:
    rows = [("a b", "X Y")] * 6
    assert kinds(list(find_labels(sight(rows, "tag")))) == []
    assert only(list(find_labels(sight([*rows, ("a b", "X Z")], "tag")))).lines == (7,)


def test_sound_labels_and_tasks_without() -> None:
    assert kinds(list(find_labels(sight(SOUND, "classify")))) == []
    assert kinds(list(find_labels(sight([("a", "b")])))) == []
