"""Events for TensorBoard, read back as TensorBoard reads them."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from regard.errors import UsageError
from regard.training import events
from regard.training.run import Call, resume, train

pytest.importorskip("tensorboard", reason="an extra: pip install 'regard[tensorboard]'")
pytestmark = pytest.mark.no_shapes

WORD = "train.tensorboard=true"


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Every curve that TensorBoard would draw: step and value."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder / "tensorboard"), size_guidance={"scalars": 0})
    found.Reload()
    return {tag: [(each.step, each.value) for each in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


def logged(folder: Path, key: str, name: str = "metrics.jsonl") -> list[tuple[int, float]]:
    entries = [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]
    return [(entry["step"], pytest.approx(entry[key], rel=1e-6)) for entry in entries
            if key in entry and "weights" not in entry]  # fmt: skip


def check(folder: Path) -> None:
    """The events are what the logs hold, each once."""
    found = scalars(folder)
    for key in ("loss", "learning_rate", "gradient_norm"):
        assert found[f"train/{key}"] == logged(folder, key)
        assert len(found[f"train/{key}"]) == 12
    assert found["train/tokens_per_second"] == logged(folder, "tokens_per_second", "times.jsonl")
    assert found["valid/exact"] == logged(folder, "valid_exact")
    assert [step for step, _ in found["valid/loss"]] == [4, 8, 12]
    assert [step for step, _ in found["valid_mean/loss"]] == [12]


def test_events_are_what_the_logs_hold(runs: Any, tmp_path: Path) -> None:
    runs.train(tmp_path / "m", WORD)
    check(tmp_path / "m")


def test_a_run_that_was_killed_and_resumed_has_each_event_once(runs: Any, tmp_path: Path) -> None:
    runs.train_until(tmp_path / "m", "before rename", 3, WORD)  # the third checkpoint would have been that of step 9
    assert max(step for step, _ in scalars(tmp_path / "m")["train/loss"]) >= 9
    resume(tmp_path / "m", quiet=True)
    check(tmp_path / "m")


def test_events_of_a_run_that_is_replaced_go_with_it(runs: Any, tmp_path: Path) -> None:
    runs.train(tmp_path / "m", WORD)
    runs.train(tmp_path / "m", force=True)
    assert not (tmp_path / "m" / "tensorboard").exists()


def test_without_the_package_it_says_which_extra_brings_it(
    runs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'regard\[tensorboard\]'"):
        runs.train(tmp_path / "m", WORD)
    assert not (tmp_path / "m").exists()


def test_without_a_folder_there_is_no_place_for_events(runs: Any) -> None:
    with pytest.raises(UsageError, match="its events are written into the folder of the run, and none was named"):
        train(runs.config(WORD), runs.data, call=Call(quiet=True))


def test_without_the_setting_nothing_of_it_is_imported(runs: Any, tmp_path: Path) -> None:
    before = {name for name in sys.modules if name.startswith("tensorboard")}
    runs.train(tmp_path / "m")
    assert {name for name in sys.modules if name.startswith("tensorboard")} == before
    assert not (tmp_path / "m" / "tensorboard").exists()


def test_a_file_made_within_the_same_second_as_the_last_comes_after_it(tmp_path: Path) -> None:
    for step in range(6):
        writer = events.Events(tmp_path, step)
        writer.close()
    seconds = [path.name.split(".")[3] for path in sorted(tmp_path.glob("events.out.tfevents.*"))]
    assert len(set(seconds)) == 6
