"""Where there is a compiler, what is computed in one pass is built: the tests of it are not skipped without a word."""

import shutil

import pytest

from regard.layers import quick


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc to build onepass with")
def test_where_there_is_a_compiler_it_was_built() -> None:
    assert quick.library() is not None
