"""`allow` in a spec: findings that do not fail a case, each with its reason."""

import pytest

from gradcli.errors import SpecError
from gradcli.spec.load import load_specs

REASON = "the kernel hands its logits over"
BY_NAME = (("mutates-input", REASON),)


def loaded(tmp_path, text):
    (tmp_path / "x.yaml").write_text(text)
    return load_specs(tmp_path / "x.yaml")


ACCEPTED = {
    "a mapping": f"allow: {{mutates-input: {REASON}}}\n",
    "a list with a reason": f"allow: [mutates-input]\nreason: {REASON}\n",
    "a name with a reason": f"allow: mutates-input\nreason: {REASON}\n",
    "under defaults": f"defaults: {{allow: {{mutates-input: {REASON}}}}}\n",
    "under defaults, a list": f"defaults:\n  allow: [mutates-input]\n  reason: {REASON}\n",
    "in a case": f"cases:\n  - allow: {{mutates-input: {REASON}}}\n",
    "in a case, a list": f"cases:\n  - allow:\n      - mutates-input\n    reason: {REASON}\n",
    "in a case, in place of the defaults'": (
        f"defaults: {{allow: {{stateful: a counter}}}}\ncases:\n  - allow: {{mutates-input: {REASON}}}\n"
    ),
    "beside a nondeterminism": f"defaults: {{nondeterminism: 1e-9, allow: [mutates-input], reason: {REASON}}}\n",
}


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_findings_are_allowed_with_their_reason(tmp_path, text):
    (spec,) = loaded(tmp_path, f"target: m:F\n{text}")
    assert spec.allow == BY_NAME


def test_nothing_is_allowed_by_default_and_several_may_be(tmp_path):
    (spec,) = loaded(tmp_path, "target: m:F\n")
    assert spec.allow == ()
    (spec,) = loaded(tmp_path, "target: m:F\nallow: {mutates-input: by design, stateful: a counter}\n")
    assert spec.allow == (("mutates-input", "by design"), ("stateful", "a counter"))
    (spec,) = loaded(tmp_path, "target: m:F\nallow: {stateful: a counter}\ncases:\n  - allow: {}\n")
    assert spec.allow == ()


REFUSED = {
    "target: m:F\nallow: {mutate-input: why}\n": "2:9: unknown finding 'mutate-input' (did you mean 'mutates-input'?)",
    "target: m:F\nallow: [stateful, wrong-sing]\nreason: w\n": (
        "2:19: unknown finding 'wrong-sing' (did you mean 'wrong-sign'?)"
    ),
    "target: m:F\nallow: nonsense\nreason: why\n": "2:8: unknown finding 'nonsense'",
    "target: m:F\nallow: {stateful: 3}\n": "2:19: stateful must have its reason, a string, got 3",
    "target: m:F\nallow: {stateful: }\n": "2:18: stateful must have its reason, a string, got null",
    "target: m:F\nallow: {stateful: [a]}\n": "2:19: stateful must have its reason, a string, got a list",
    "target: m:F\nallow: [stateful]\n": "2:8: allow needs a reason",
    "target: m:F\nallow: [[stateful]]\n": "2:8: allow must be a mapping from findings to reasons, or a list",
    "target: m:F\nallow: 3\n": "2:8: allow must be a mapping from findings to reasons, or a list of findings, got 3",
    "target: m:F\nallow: {stateful: a, stateful: b}\n": "2:22: duplicate key 'stateful' (first given in line 2)",
    "target: m:F\nreason: why\n": "2:9: the key 'reason' says why findings are allowed, but there is no key 'allow'",
    "target: m:F\ndefaults: {reason: why}\n": (
        "2:20: the key 'reason' belongs to 'nondeterminism' or 'allow', and neither is given"
    ),
    "target: m:F\nalow: {stateful: why}\n": "2:1: unknown key 'alow' (did you mean 'allow'?)",
}


@pytest.mark.parametrize(("text", "told"), REFUSED.items(), ids=REFUSED.values())
def test_what_cannot_be_allowed_is_told_with_its_place(tmp_path, text, told):
    with pytest.raises(SpecError) as raised:
        loaded(tmp_path, text)
    assert any(problem.partition("x.yaml:")[2].startswith(told) for problem in raised.value.problems)
