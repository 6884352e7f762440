"""The numbered list is kept: each rule is said at the top, repeated at its code, and tested."""

from __future__ import annotations

import re
from pathlib import Path

from savepoint.core import verify

FOLDER = Path(__file__).parent


def test_list_at_the_top_is_numbered_without_a_gap_and_names_an_attack_each() -> None:
    rules = re.findall(r"(?ms)^(VERIFY-\d+)  (.*?)(?=^VERIFY-|\n\n)", str(verify.__doc__))
    assert tuple(name for name, _ in rules) == verify.LOCAL_RULES
    assert [name for name, text in rules if "Stops " not in text] == []


def test_every_rule_is_repeated_at_its_code() -> None:
    source = Path(str(verify.__file__)).read_text(encoding="utf-8")
    code = source.replace(str(verify.__doc__), "")
    assert [rule for rule in verify.LOCAL_RULES if f'"""{rule}' not in code] == []


def test_every_rule_is_in_the_name_of_a_test() -> None:
    names = [
        name
        for path in FOLDER.glob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    tested = {rule: f"test_{rule.lower().replace('-', '_')}_" for rule in verify.LOCAL_RULES}
    assert [
        rule for rule, start in tested.items() if not any(one.startswith(start) for one in names)
    ] == []
