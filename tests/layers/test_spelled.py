"""Spelled words: one vector for each word, from its own letters alone."""

import pytest
import torch
from torch import Tensor, nn

from regard.data.tokens import END, PAD, SEPARATOR, SPECIALS, UNKNOWN
from regard.layers.embedding import Embedding
from regard.layers.spelled import REACH, Spelled

WORDS, LETTERS, WIDTH = 4, 6, 5
CAT, DOG = len(SPECIALS), len(SPECIALS) + 1
A, B, C = (len(SPECIALS) + WORDS + i for i in range(3))  # letters


@pytest.fixture
def spelled() -> Spelled:
    torch.manual_seed(0)
    table = Embedding(len(SPECIALS) + WORDS, WIDTH, True, nn.Identity())
    return Spelled(table, 3, LETTERS, 0.5, nn.Identity()).eval()


def ids(*rows: list[int]) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


def slow_vector(spelled: Spelled, word: int, letters: list[int]) -> Tensor:
    """The definition, a word at a time."""
    vector_D = spelled.table(torch.tensor([[word]]))[0, 0]
    x = spelled.letters(torch.tensor(letters) - spelled.first) if letters else torch.empty(0, 3)
    padded = nn.functional.pad(x, (0, 0, REACH, REACH))
    seen = [spelled.convolution(padded[at : at + 2 * REACH + 1].flatten()).relu() for at in range(len(letters))]
    if not seen:
        return vector_D
    found: Tensor = vector_D + spelled.projection(torch.stack(seen).amax(0))
    return found


ROWS = ([CAT, A, B, C, UNKNOWN, C, SEPARATOR, DOG, B, A, C, C, A, END], [DOG, A, END], [END])
WORDS_OF = (
    [(CAT, [A, B, C]), (UNKNOWN, [C]), (SEPARATOR, []), (DOG, [B, A, C, C, A]), (END, [])],
    [(DOG, [A]), (END, [])],
    [(END, [])],
)


def test_words_are_what_is_no_letter(spelled: Spelled) -> None:
    found = spelled.words(ids(*ROWS))
    assert found.tolist() == [[CAT, UNKNOWN, SEPARATOR, DOG, END], [DOG, END, PAD, PAD, PAD], [END] + [PAD] * 4]


def test_each_word_has_the_vector_of_its_letters(spelled: Spelled) -> None:
    found_BTE = spelled(ids(*ROWS))
    for row, words in enumerate(WORDS_OF):
        for at, (word, letters) in enumerate(words):
            torch.testing.assert_close(found_BTE[row, at], slow_vector(spelled, word, letters))


def test_neighbours_and_batch_mates_change_no_word(spelled: Spelled) -> None:
    together, alone = spelled(ids(*ROWS))[1, :2], spelled(ids(ROWS[1]))[0]
    torch.testing.assert_close(together, alone)
    other = spelled(ids([DOG, A, CAT, B, C]))[0, 0]
    torch.testing.assert_close(other, alone[0])


def test_a_letter_tells_words_apart(spelled: Spelled) -> None:
    found_BTE = spelled(ids([UNKNOWN, A, B], [UNKNOWN, A, C]))
    assert not torch.allclose(found_BTE[0], found_BTE[1])


def test_letters_before_any_word_are_nobodys(spelled: Spelled) -> None:
    torch.testing.assert_close(spelled(ids([A, B, CAT, C])), spelled(ids([CAT, C])))


def test_words_are_forgotten_in_training_alone(spelled: Spelled) -> None:
    """About half of the words with letters; what has none is never forgotten."""
    source = ids([CAT, A, END] * 200)
    torch.testing.assert_close(spelled(source), spelled(source))
    count = torch.tensor([1, 0] * 200)
    words_BT = spelled.words(source)
    spelled.train()
    torch.manual_seed(1)
    forgotten_BT = spelled.forget(words_BT, count) != words_BT
    assert not forgotten_BT[:, 1::2].any()
    assert 60 < int(forgotten_BT.sum()) < 140
    torch.manual_seed(1)
    assert torch.equal(forgotten_BT, spelled.forget(words_BT, count) != words_BT)


def test_all_of_it_learns(spelled: Spelled) -> None:
    torch.autograd.backward(spelled(ids(*ROWS)).sum())
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in spelled.parameters())
