"""A search that is told to stop does so soon, wherever it runs; one that is not told never notices."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch

from regard.errors import Stopped
from regard.layers.crf import Chain
from regard.search.write import Sampling
from regard.stop import Stop, go_on
from regard.tasks.extract import Extract
from regard.tasks.task import Wish
from regard.trained import Trained
from tests.view.small import made

SmallModel = Callable[..., Trained]
LONG = 1_000_000  # tokens: minutes

WISHES = {
    "whole": Wish(beam=2, min_length=LONG, max_length=LONG),
    "greedy": Wish(min_length=LONG, max_length=LONG, no_repeat=1_000_000),
    "beam": Wish(beam=2, min_length=LONG, max_length=LONG, no_repeat=1_000_000),
    "sample": Wish(sampling=Sampling(), min_length=LONG, max_length=LONG),
}


@pytest.mark.no_shapes
@pytest.mark.parametrize("name", WISHES)
def test_a_search_stops_soon(small_model: SmallModel, name: str) -> None:
    trained = small_model("rnn", f"data.max_target={LONG}")
    stop = Stop()
    threading.Timer(0.3, stop.set).start()
    with stop.heard(), pytest.raises(Stopped):
        trained.run(["abc", "bcd"], wish=WISHES[name])
    begun = time.monotonic()
    with stop.heard(), pytest.raises(Stopped):
        trained.run(["abc"], wish=WISHES[name])
    assert time.monotonic() - begun < 20.0  # far less than the search would take


def test_other_threads_and_later_searches_go_on(small_model: SmallModel) -> None:
    trained, stop = small_model("rnn"), Stop()
    expected = trained.run(["abc"])
    stop.set()
    found: list[object] = []
    with stop.heard():
        with pytest.raises(Stopped):
            go_on()
        other = threading.Thread(target=lambda: found.append(trained.run(["abc"])))
        other.start()
        other.join()
    go_on()
    assert found == [expected]
    assert trained.run(["abc"]) == expected


@contextmanager
def told_at(question: int) -> Iterator[None]:
    """Whoever works under this is told to stop at its n-th question whether to go on."""

    class Late(Stop):
        asked = 0

        @property
        def is_set(self) -> bool:
            self.asked += 1
            return self.asked >= question

    with Late().heard():
        yield


@pytest.mark.parametrize("question", [1, 15])
@pytest.mark.parametrize("name", ["best", "log_marginals", "log_partition"])
def test_a_chain_stops_at_any_place(name: str, question: int) -> None:
    chain, emissions_BTV, mask_BT = Chain(3), torch.zeros(1, 20, 3), torch.ones(1, 20, dtype=torch.bool)
    more = (2,) if name == "best" else ()
    with told_at(question), pytest.raises(Stopped):
        getattr(chain, name)(emissions_BTV, mask_BT, *more)


def test_a_choice_of_pieces_stops_between_two_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.tasks.extract.AT_ONCE", 64)
    task = made("extract", "encoder", "data.max_target=8").task
    assert isinstance(task, Extract)
    with told_at(3), pytest.raises(Stopped):
        task.spans(torch.zeros(50, 2), 4)


def test_texts_are_not_made_numbers_of_for_nobody(small_model: SmallModel) -> None:
    with told_at(1), pytest.raises(Stopped):
        small_model("rnn").item("abc")


def test_reading_stops_between_two_runs(small_model: SmallModel) -> None:
    trained, stop = small_model("encoder", "task=fill"), Stop()
    stop.set()
    with stop.heard(), pytest.raises(Stopped):
        trained.embed(["abc"])
