"""Runs of tokens around a place: which, at the ends of a text, and in a whole model."""

import pytest
import torch

from regard import config
from regard.errors import ConfigError
from regard.layers.ngrams import NGrams, windows


def test_windows_cover_their_place() -> None:
    assert windows(3) == [(-1, 2), (0, 2), (-2, 3), (-1, 3), (0, 3)]


def test_equal_runs_have_equal_vectors_wherever_they_stand() -> None:
    ngrams = NGrams(3, 1000, 4)
    rows = ngrams.places(torch.tensor([[5, 6, 7, 8, 5, 6, 7, 9]]))[0]
    assert rows[1].tolist()[:1] == rows[5].tolist()[:1]  # 5 6, ending here
    assert rows[1, 3] == rows[5, 3]  # 5 6 7 around it
    assert rows[2, 1] != rows[6, 1]  # 7 8 and 7 9
    assert len({int(row) // 1000 for row in rows[3]}) == 5  # each window has rows of its own


def test_vectors_begin_at_zero_and_are_summed() -> None:
    ngrams = NGrams(2, 50, 4)
    ids_BS = torch.tensor([[4, 5, 6]])
    assert ngrams(ids_BS).abs().sum() == 0
    with torch.no_grad():
        ngrams.table.weight.normal_()
    expected = ngrams.table.weight[ngrams.places(ids_BS)[0, 1]].sum(0)
    assert torch.equal(ngrams(ids_BS)[0, 1], expected)


def test_padding_is_what_lies_beyond_the_end() -> None:
    ngrams = NGrams(4, 99, 4)
    short, long = torch.tensor([[7, 8, 9]]), torch.tensor([[7, 8, 9, 0, 0, 0, 0]])
    assert torch.equal(ngrams.places(short), ngrams.places(long)[:, :3])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["preset=decoder"], "no encoder that reads tokens"),
        (["preset=caption"], "no encoder that reads tokens"),
        (["preset=encoder", "task=tag", "tokens.source=spelled"], "the letters in them already"),
    ],
)
def test_what_has_no_runs_refuses_them(words: list[str], why: str) -> None:
    preset = words[0].partition("=")[2]
    with pytest.raises(ConfigError, match=why):
        config.resolve(preset, None, [*words[1:], "embedding.ngrams=3"])


def test_buckets_of_nothing_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"embedding.ngrams=3"):
        config.resolve("rnn", None, ["embedding.buckets=99"])
