"""How many threads suit a model: one that is small and meets few tokens at once is faster on one."""

import pytest
import torch

from regard import config
from regard.models import threads
from regard.models.build import build


@pytest.mark.parametrize(("tokens", "wanted", "count"), [(512, None, 1), (1 << 20, None, 3), (512, 2, 2)])
def test_much_work_is_shared(tokens: int, wanted: int | None, count: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        model = build(config.resolve("rnn"), 50, 50)
        assert model.size < threads.SMALL
        with threads.threads(model, wanted, tokens) as found:
            assert found == torch.get_num_threads() == count
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
