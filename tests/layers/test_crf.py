"""The chain of labels against all labellings there are."""

from itertools import pairwise, product

import pytest
import torch
from torch import Tensor

from regard.layers.crf import Chain

LABELS, LENGTHS = 3, (4, 1, 3, 0)


@pytest.fixture
def chain(dtype: torch.dtype) -> Chain:
    made = Chain(LABELS).to(dtype)
    for weight in made.parameters():
        torch.nn.init.normal_(weight)
        weight.requires_grad_(False)
    return made


@pytest.fixture
def emissions_BTV(dtype: torch.dtype) -> Tensor:
    return torch.randn(len(LENGTHS), max(LENGTHS), LABELS, dtype=dtype)


@pytest.fixture
def mask_BT() -> Tensor:
    return torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]


def score(chain: Chain, emissions_TV: Tensor, labels: tuple[int, ...]) -> float:
    """The definition."""
    total = sum(float(emissions_TV[at, label]) for at, label in enumerate(labels))
    total += sum(float(chain.transitions[a, b]) for a, b in pairwise(labels))
    return total + float(chain.first[labels[0]] + chain.last[labels[-1]])


def all_of(chain: Chain, emissions_TV: Tensor, length: int) -> tuple[list[tuple[int, ...]], Tensor]:
    """Every labelling and its probability, likeliest first."""
    every = list(product(range(LABELS), repeat=length))
    log_N = torch.tensor([score(chain, emissions_TV, each) for each in every], dtype=torch.float64).log_softmax(0)
    order = log_N.argsort(descending=True)
    return [every[i] for i in order.tolist()], log_N[order].exp()


def test_log_likelihood_is_that_of_all_labellings(chain: Chain, emissions_BTV: Tensor, mask_BT: Tensor) -> None:
    label_BT = torch.randint(LABELS, mask_BT.shape) * mask_BT
    found_B = chain.log_likelihood(emissions_BTV, label_BT, mask_BT)
    for row, length in enumerate(LENGTHS):
        if not length:
            assert found_B[row] == 0.0
            continue
        every, chance_N = all_of(chain, emissions_BTV[row], length)
        expected = chance_N[every.index(tuple(label_BT[row, :length].tolist()))].log()
        assert float(found_B[row]) == pytest.approx(float(expected), abs=1e-5)


def test_marginals_are_those_of_all_labellings(chain: Chain, emissions_BTV: Tensor, mask_BT: Tensor) -> None:
    found_BTV = chain.log_marginals(emissions_BTV, mask_BT).exp()
    for row, length in enumerate(LENGTHS):
        expected_TV = torch.zeros(length, LABELS, dtype=torch.float64)
        every, chance_N = all_of(chain, emissions_BTV[row], length) if length else ([], torch.empty(0))
        for labels, chance in zip(every, chance_N, strict=True):
            expected_TV[range(length), labels] += chance
        torch.testing.assert_close(found_BTV[row, :length].double(), expected_TV, atol=1e-5, rtol=0.0)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_best_are_the_best_of_all(chain: Chain, emissions_BTV: Tensor, mask_BT: Tensor, count: int) -> None:
    labels_BNT, log_BN = chain.best(emissions_BTV, mask_BT, count)
    for row, length in enumerate(LENGTHS):
        if not length:
            continue
        every, chance_N = all_of(chain, emissions_BTV[row], length)
        there = min(count, len(every))
        assert [tuple(each.tolist()) for each in labels_BNT[row, :there, :length]] == every[:there]
        torch.testing.assert_close(log_BN[row, :there].exp().double(), chance_N[:there], atol=1e-5, rtol=0.0)
        assert (log_BN[row, there:] == -torch.inf).all()


def test_padding_and_batch_mates_change_nothing(chain: Chain, emissions_BTV: Tensor, mask_BT: Tensor) -> None:
    noisy_BTV = torch.where(mask_BT[..., None], emissions_BTV, 100.0)
    label_BT = torch.zeros(mask_BT.shape, dtype=torch.long)
    together_B = chain.log_likelihood(noisy_BTV, label_BT, mask_BT)
    for row, length in enumerate(LENGTHS[:3]):
        part = slice(row, row + 1), slice(0, length)
        alone_B = chain.log_likelihood(emissions_BTV[part], label_BT[part], mask_BT[part])
        torch.testing.assert_close(together_B[row], alone_B[0])


def test_far_scores_do_not_underflow(chain: Chain) -> None:
    """A label that is hopeless everywhere still has a probability, and a gradient."""
    chain.requires_grad_(True)
    emissions_BTV = torch.zeros(1, 30, LABELS, dtype=chain.first.dtype)
    emissions_BTV[..., 1] = -1000.0
    label_BT = torch.ones(1, 30, dtype=torch.long)
    found_B = chain.log_likelihood(emissions_BTV, label_BT, torch.ones(1, 30, dtype=torch.bool))
    assert torch.isfinite(found_B).all()
    assert float(found_B) < -29_000
    torch.autograd.backward(found_B.sum())
    assert all(weight.grad is not None and torch.isfinite(weight.grad).all() for weight in chain.parameters())
