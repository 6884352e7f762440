"""The numbered list is kept: each rule is said at the top, repeated at its code, and tested."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core import (
    verify_chain,
    verify_git,
    verify_index,
    verify_lineage,
    verify_proof,
    verify_stored,
)

if TYPE_CHECKING:
    from types import ModuleType

FOLDER = Path(__file__).parent


LISTS = [
    (verify_index, verify_index.INDEX_RULES),
    (verify_stored, verify_stored.STORED_RULES),
    (verify_git, verify_git.GIT_RULES),
    (verify_chain, verify_chain.CHAIN_RULES),
    (verify_proof, verify_proof.PROOF_RULES),
    (verify_lineage, verify_lineage.LINEAGE_RULES),
]


@pytest.mark.parametrize(("module", "expected"), LISTS)
def test_list_at_the_top_is_numbered_without_a_gap_and_names_an_attack_each(
    module: ModuleType, expected: tuple[str, ...]
) -> None:
    rules = re.findall(r"(?ms)^([A-Z]+-\d+) +(.*?)(?=^[A-Z]+-|\n\n)", str(module.__doc__))
    assert tuple(name for name, _ in rules) == expected
    assert [name for name, text in rules if "Stops " not in text] == []


@pytest.mark.parametrize(("module", "expected"), LISTS)
def test_every_rule_is_repeated_at_its_code(module: ModuleType, expected: tuple[str, ...]) -> None:
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    code = source.replace(str(module.__doc__), "")
    assert [rule for rule in expected if f'"""{rule}' not in code] == []


def test_every_rule_is_in_the_name_of_a_test() -> None:
    names = [
        name
        for folder in (FOLDER, FOLDER.parent / "resurrect")
        for path in folder.glob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    rules = [rule for _, expected in LISTS for rule in expected]
    tested = {rule: f"test_{rule.lower().replace('-', '_')}_" for rule in rules}
    assert [
        rule for rule, start in tested.items() if not any(one.startswith(start) for one in names)
    ] == []
