"""One vector of many states: padding and neighbours change nothing, and each way is what its name says."""

import pytest
import torch
from torch import Tensor

from regard.layers.pool import Pool

KINDS = ["mean", "max", "class", "attention"]


def pool(kind: str, dtype: torch.dtype) -> Pool:
    made = Pool(kind, 6).to(dtype)
    if made.weight is not None:
        torch.nn.init.normal_(made.weight)
    return made


def rows(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    states_BTD = torch.randn(4, 5, 6, dtype=dtype)
    mask_BT = torch.arange(5) < torch.tensor([5, 1, 3, 2])[:, None]
    return states_BTD, mask_BT


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_padded_does_not_count(kind: str, dtype: torch.dtype) -> None:
    made, (states_BTD, mask_BT) = pool(kind, dtype), rows(dtype)
    found_BD = made(states_BTD, mask_BT)
    assert torch.equal(found_BD, made(states_BTD.masked_fill(~mask_BT[..., None], 1e6), mask_BT))
    assert found_BD.shape == (4, 6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_alone_is_the_same_to_the_bit(kind: str, dtype: torch.dtype) -> None:
    made, (states_BTD, mask_BT) = pool(kind, dtype), rows(dtype)
    together_BD = made(states_BTD, mask_BT)
    for row in range(len(mask_BT)):
        states_TD = states_BTD[row, mask_BT[row]]
        assert torch.equal(made.flat(states_TD, torch.tensor([len(states_TD)]))[0], together_BD[row])


def test_each_is_what_its_name_says(dtype: torch.dtype) -> None:
    states_BTD, mask_BT = rows(dtype)
    attention = pool("attention", dtype)
    assert attention.weight is not None
    for row, mask_T in enumerate(mask_BT):
        states_TD = states_BTD[row, mask_T]
        share_T = (states_TD @ attention.weight).softmax(0)
        expected = {"mean": states_TD.mean(0), "max": states_TD.amax(0), "class": states_TD[-1],
                    "attention": share_T @ states_TD}  # fmt: skip
        for kind, vector_D in expected.items():
            made = attention if kind == "attention" else pool(kind, dtype)
            torch.testing.assert_close(made(states_BTD, mask_BT)[row], vector_D)


def test_attention_that_has_learnt_nothing_is_the_mean(dtype: torch.dtype) -> None:
    states_BTD, mask_BT = rows(dtype)
    fresh = Pool("attention", 6).to(dtype)
    torch.testing.assert_close(fresh(states_BTD, mask_BT), Pool("mean", 6)(states_BTD, mask_BT))


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_the_equations(kind: str) -> None:
    torch.manual_seed(0)
    made, (states_BTD, mask_BT) = pool(kind, torch.float64), rows(torch.float64)
    assert torch.autograd.gradcheck(lambda each: made(each, mask_BT), states_BTD.requires_grad_())


def test_large_scores_do_not_overflow() -> None:
    made = Pool("attention", 2)
    made.weight = torch.nn.Parameter(torch.tensor([1000.0, 0.0]))
    states_BTD = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
    assert torch.equal(made(states_BTD, torch.ones(1, 2, dtype=torch.bool)), torch.tensor([[3.0, 4.0]]))
