"""Shards: what was written is read, in files of bounded size, and damage to their form is seen."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data import shards as shards_module
from regard.data.ragged import ragged
from regard.data.shards import INDEX, Layout, Rows, Shard, Shards, Writer, id_width
from regard.errors import FolderError, RegardError

SIDES = st.lists(st.tuples(*[st.lists(st.integers(0, 65535), max_size=6)] * 2), min_size=1, max_size=12)


def write(folder: Path, portions: list[Rows], largest: int = 1 << 20, width: int = 2) -> tuple[Layout, Writer]:
    writer = Writer(folder, "train", width, largest)
    for rows in portions:
        writer.add(rows)
    return writer.close(), writer


def rows(pairs: list[tuple[list[int], list[int]]]) -> Rows:
    return Rows(ragged([source for source, _ in pairs]), ragged([target for _, target in pairs]))


@settings(max_examples=25, deadline=None, database=None, derandomize=True)
@given(pairs=SIDES, portion=st.integers(1, 5), largest=st.sampled_from([1, 60, 200, 1 << 20]))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[list[int], list[int]]], portion: int, largest: int
) -> None:
    folder = tmp_path_factory.mktemp("shards")
    portions = [rows(pairs[start : start + portion]) for start in range(0, len(pairs), portion)]
    layout, _ = write(folder, portions, largest)
    found = Shards(folder, layout)
    assert len(found) == sum(layout.counts) == len(pairs)
    assert [(found.row(i).source.tolist(), found.row(i).target.tolist()) for i in range(len(pairs))] == pairs
    expected = [[len(source), len(target)] for source, target in pairs]
    assert found.lengths(0, len(pairs)).tolist() == expected
    assert found.lengths(1, len(pairs) - 1).tolist() == expected[1 : len(pairs) - 1]


def test_files_are_bounded_and_listed(tmp_path: Path) -> None:
    portion = rows([([1] * 10, [2] * 10)] * 10)  # 400 bytes of ids, 120 of index
    layout, writer = write(tmp_path, [portion] * 5, largest=1100)
    assert layout.counts == (20, 20, 10)
    assert {path.name for path in tmp_path.iterdir()} == {each.name for each in writer.written}
    for each in writer.written:
        content = (tmp_path / each.name).read_bytes()
        assert (each.bytes, each.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    for number in range(3):
        assert sum(path.stat().st_size for path in tmp_path.glob(f"train-{number:05}.*")) <= 1100


def test_ids_are_little_endian_of_two_bytes_or_four(tmp_path: Path) -> None:
    assert (id_width(1 << 16), id_width((1 << 16) + 1)) == (2, 4)
    for width in (2, 4):
        layout, _ = write(tmp_path, [rows([([1, 258], [3])])], width=width)
        raw = (tmp_path / "train-00000.ids").read_bytes()
        assert raw == b"".join(each.to_bytes(width, "little") for each in (1, 258, 3))
        assert Shards(tmp_path, layout).row(0).source.tolist() == [1, 258]
    assert INDEX.itemsize == 12


def test_pictures_stand_beside_their_rows(tmp_path: Path) -> None:
    pictures = np.random.default_rng(0).random((5, 3, 2, 2), dtype=np.float32)
    parts = [Rows(ragged([()] * 2), ragged([(1,), (2,)]), pictures[:2]),
             Rows(ragged([()] * 3), ragged([(3,)] * 3), pictures[2:])]  # fmt: skip
    for largest in (1, 1 << 20):
        layout, _ = write(tmp_path, parts, largest)
        found = Shards(tmp_path, layout)
        for number in range(5):
            picture = found.row(number).picture
            assert picture is not None
            assert np.array_equal(picture, pictures[number])


def test_what_was_forgotten_comes_back(tmp_path: Path) -> None:
    layout, _ = write(tmp_path, [rows([([1, 2], [3])] * 100)])
    found = Shards(tmp_path, layout)
    row = found.row(50)
    found.forget()
    assert row.source.tolist() == [1, 2]
    assert found.row(99).target.tolist() == [3]


def test_memory_is_given_back_when_enough_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout, _ = write(tmp_path, [rows([([1, 2], [3])] * 100)])
    found = Shards(tmp_path, layout)
    calls: list[int] = []
    monkeypatch.setattr(Shard, "forget", lambda self: calls.append(1))
    monkeypatch.setattr(shards_module, "HELD", 10 * 4096)
    first = found.row(0)
    for number in range(100):
        assert found.row(number).target.tolist() == [3]
        found.lengths(number, number + 1)
    assert len(calls) == pytest.approx(20, abs=3)
    assert first.source.tolist() == [1, 2]


def test_nothing_but_empty_rows(tmp_path: Path) -> None:
    layout, _ = write(tmp_path, [rows([([], [])] * 3)])
    assert Shards(tmp_path, layout).row(2).source.tolist() == []


def test_rows_are_not_writable(tmp_path: Path) -> None:
    layout, _ = write(tmp_path, [rows([([1], [2])])])
    with pytest.raises(ValueError, match="read-only"):
        Shards(tmp_path, layout).row(0).source[0] = 5


def test_wrong_sizes_and_missing_files_are_seen(tmp_path: Path) -> None:
    layout, _ = write(tmp_path, [rows([([1], [2])] * 4)])
    index = tmp_path / "train-00000.index"
    whole = index.read_bytes()
    for content, message in ((whole[:-1], "expected a multiple of 12"), (whole[:-12], "found 3 rows, expected 4")):
        index.write_bytes(content)
        with pytest.raises(FolderError, match=rf"train-00000\.index: .*{message}"):
            Shards(tmp_path, layout)
    index.unlink()
    with pytest.raises(FolderError, match=r"train-00000\.index: can not be read"):
        Shards(tmp_path, layout)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="can not be written"):
        write(tmp_path / "nowhere", [rows([([1], [2])])])
