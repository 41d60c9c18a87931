"""The formula of operations against what torch counts."""

import pytest
import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from bench.operations import per_target_token
from bench.peers.corpus import Corpus
from bench.peers.plain import Model
from bench.peers.sizes import Transformer


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize(("source", "target"), [(7, 9), (20, 6)])
def test_the_formula_counts_what_a_step_computes(source: int, target: int) -> None:
    """Fused attention is not counted by torch, so it is kept out of the way."""
    size = Transformer(layers=2, width=32, feedforward=48, heads=4, dropout=0.0)
    corpus = Corpus(50, 0, 1, 2, [([3] * (source - 1), [4] * (target - 1))] * 3)
    model = Model(size, corpus.size, corpus.pad).train()
    source_BS, target_BT = torch.full((3, source), 3), torch.full((3, target), 4)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        logits_BTV = model(source_BS, target_BT)
        torch.autograd.backward(F.cross_entropy(logits_BTV.flatten(0, 1), target_BT.flatten()))
    assert per_target_token(size, corpus) * 3 * target == counter.get_total_flops()
