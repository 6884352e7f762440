"""A scripted life of twelve successions gives the golden files, byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from succession.dynasty import ceremony
from tests.succession import scripted

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the life leaves, by the names of golden/."""
    return scripted.golden(scripted.life(tmp_path_factory.mktemp("life") / "scene"))


def _golden() -> dict[str, Path]:
    folder = scripted.GOLDEN
    return {one.relative_to(folder).as_posix(): one for one in folder.rglob("*") if one.is_file()}


def test_every_golden_file_is_made(lived: dict[str, str]) -> None:
    assert sorted(lived) == sorted(_golden())
    assert len(lived) == 1 + len(scripted.SHOWN) * len(scripted.FILES)


@pytest.mark.parametrize("name", sorted(_golden()))
def test_golden(lived: dict[str, str], name: str) -> None:
    assert lived[name] == _golden()[name].read_text()


def test_the_sides_of_every_box_are_straight(lived: dict[str, str]) -> None:
    lines = lived["ceremonies.txt"].split("\n")
    boxes = [line for line in lines if line[:1] in set("┌│├└")]
    assert len(boxes) > 12 * 10
    assert {ceremony.width(line) for line in boxes} == {55}
