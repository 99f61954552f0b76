"""What an edit of a draft can use: the names that backward has at the probes, and numbers from around it."""

from typing import Any

from gradcli.edits.captured import usable
from gradcli.edits.draft import Draft
from gradcli.edits.idiom import idiom_of
from gradcli.edits.scope import names_at_end, scope_of
from gradcli.fix.candidates import Setting
from gradcli.fix.probes import Probes
from gradcli.runner.arguments.prepare import Prepared


def setting_of(ready: Prepared, draft: Draft, probes: Probes, wrong: frozenset[int]) -> Setting | None:
    """What backward can use, seen in a run at every probe."""
    part = draft.backward
    code = draft.codes.get(part.function, part.function.__code__)
    framework: Any = ready.backend.framework  # type: ignore[attr-defined]  # every backend here has one
    known = usable(draft, code)
    around: dict[str, Any] = {name: each.value for name, each in known.items()}
    owners = {name.partition(".")[0] for name in known if "." in name}
    around |= {owner: part.function.__globals__[owner] for owner in owners}
    scopes = []
    for probe in probes.each or ():
        seen = around | names_at_end(code, probe.returned)
        scopes.append(scope_of(seen, part.node, framework.is_tensor, framework=ready.backend.name))
    if not scopes or any([a.text for a in s.atoms] != [a.text for a in scopes[0].atoms] for s in scopes):
        scopes = scopes[:1]
    if not scopes:
        return None
    subject = probes.each[0].subject
    returned = probes.each[0].returned()
    return Setting(
        draft=draft,
        scopes=tuple(scopes),
        idiom=idiom_of(draft, ready.backend.name),
        parameters=len(subject.arguments),
        positions=tuple(subject.active[place] for place in sorted(wrong)),
        count=0 if returned is None or not wrong else len(returned),
        plain=tuple(a.name for a in subject.arguments if not a.is_tensor),
        is_complex=any(b.complex for b in (*subject.domain.blocks, *subject.codomain.blocks)),
        to_array=framework.to_array,
    )
