"""A search that is told to stop does so soon, wherever it runs; one that is not told never notices."""

import threading
import time
from collections.abc import Callable

import pytest

from regard.errors import Stopped
from regard.search.stop import Stop, go_on
from regard.search.write import Sampling
from regard.tasks.task import Wish
from regard.trained import Trained

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


def test_reading_stops_between_two_runs(small_model: SmallModel) -> None:
    trained, stop = small_model("encoder", "task=fill"), Stop()
    stop.set()
    with stop.heard(), pytest.raises(Stopped):
        trained.embed(["abc"])
