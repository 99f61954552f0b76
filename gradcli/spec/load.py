"""Specs read into cases: every error at once, each with its file, line and column."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, final

import yaml

from gradcli.cases import DTYPES, CheckSpec, Expectation, InputsFrom, Problem
from gradcli.errors import SpecError
from gradcli.frozen import dataclass
from gradcli.settings import MOST_SAMPLES
from gradcli.spec.allow import read_allow
from gradcli.spec.document import Problems, compose, described, entries
from gradcli.spec.fields import Fields, read_fields
from gradcli.spec.model import CASE_KEYS, CHECKS, DEFAULTS_KEYS, DOCUMENT_KEYS, EXPECTATIONS, FINDINGS
from gradcli.spec.places import target_located, target_missing
from gradcli.spec.read_inputs import InputsReader
from gradcli.spec.resolve import beside
from gradcli.spec.sizes import read_sizes, size_combinations

MOST_NONDETERMINISM = 1e-2
_SUFFIXES = (".yaml", ".yml")


def load_specs(path: Path) -> tuple[CheckSpec, ...]:
    """The cases of a spec file, or of every spec directly in a directory.

    Args:
        path: a `.yaml` file, or a directory, whose subdirectories are left alone.

    Returns:
        The cases in the order of the files' names and of their documents; none for a directory without specs.

    Raises:
        SpecError: with every problem of every file.
    """
    problems: list[str] = []
    cases: list[CheckSpec] = []
    for file in spec_files(path):
        try:
            cases += _load_file(file)
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(tuple(problems))
    return tuple(cases)


def spec_files(path: Path) -> list[Path]:
    """A spec itself, or every spec directly in a folder. Raises SpecError for a folder that cannot be read."""
    if not path.is_dir():
        return [path]
    try:
        return sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES)
    except OSError as error:
        raise SpecError((f"{path}:1:1: cannot be read: {error.strerror}",)) from error


def _load_file(path: Path) -> list[CheckSpec]:
    shown = str(path)
    problems = Problems(shown)
    documents = compose(path, shown)
    if not documents:
        raise SpecError((f"{shown}:1:1: the file is empty; expected at least 'target: module:Name'",))
    read = [_Document(node=node, problems=problems, folder=path.parent, shown=shown) for node in documents]
    cases = [case for document in read for case in document.cases()]
    if problems.found:
        raise SpecError(problems.texts())
    _refuse_equal_ids(cases)
    return cases


def _refuse_equal_ids(cases: list[CheckSpec]) -> None:
    first: dict[str, str | None] = {}
    repeated = []
    for case in cases:
        if case.case_id in first:
            where = (first[case.case_id] or "").rpartition(":")[2]
            repeated.append(
                f"{case.origin}:1: the case {case.case_id} is already in line {where}; give it a name of its own"
            )
        first.setdefault(case.case_id, case.origin)
    if repeated:
        raise SpecError(tuple(repeated))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Document:
    """One document of a spec: one target and its cases."""

    node: yaml.Node
    problems: Problems
    folder: Path
    shown: str

    def cases(self) -> list[CheckSpec]:
        """The document's cases; an empty list where it has problems, which are noted."""
        if not isinstance(self.node, yaml.MappingNode):
            self.problems.add(self.node, f"expected a mapping with 'target', got {described(self.node)}")
            return []
        document = read_fields(self.node, DOCUMENT_KEYS, self.problems, below=DEFAULTS_KEYS)
        if "defaults" in document:
            defaults = read_fields(document.nodes["defaults"], DEFAULTS_KEYS, self.problems)
        else:
            defaults = Fields.empty()
        sizes = read_sizes(document.nodes.get("sizes"), self.problems)
        listed = document.nodes["cases"].value if "cases" in document else []
        if "cases" in document and not listed:
            self.problems.add(document.nodes["cases"], "the list of cases is empty; leave 'cases' out to infer inputs")
        target = target_located(document.text("target"), self.folder)
        base = CheckSpec(
            target=target,
            grad=self._grad(document, target, None),
            saved=document.names("saved", ()),
            construct=self._construct(document, ()),
            allow=read_allow(document, (), self.problems),
            expect=self._expectation(document, Expectation()),
            origin=self._origin(self.node),
            column=self.node.start_mark.column + 1,
        )
        if "reason" in document and "allow" not in document:
            self.problems.add(
                document.nodes["reason"], "the key 'reason' says why findings are allowed, but there is no key 'allow'"
            )
        if "cases" not in document:
            found = [self._overridden(base, defaults)]
        else:
            found = [case for node in listed for case in self._case(node, base, defaults, sizes)]
        return [self._with_problem(case) for case in found]

    def _with_problem(self, case: CheckSpec) -> CheckSpec:
        """The case, with why it cannot be run where a file that it names is nowhere."""
        for named in (case.target, case.grad):
            why = None if named is None else target_missing(named, self.folder)
            if why is not None:
                message = f"{case.origin}:{case.column}: {why}"
                return replace(case, problem=Problem(message=message, exit_code=SpecError.exit_code))
        return case

    def _case(
        self, node: yaml.Node, base: CheckSpec, defaults: Fields, sizes: Mapping[str, tuple[int, ...]]
    ) -> list[CheckSpec]:
        if not isinstance(node, yaml.MappingNode):
            self.problems.add(node, f"a case must be a mapping with 'inputs', got {described(node)}")
            return []
        fields = read_fields(node, CASE_KEYS, self.problems)
        own = read_sizes(fields.nodes.get("sizes"), self.problems)
        spec = self._overridden(self._overridden(base, defaults), fields)
        spec = replace(
            spec,
            name=fields.get("name"),
            grad=self._grad(fields, base.target, base.grad),
            saved=fields.names("saved", base.saved),
            construct=self._construct(fields, base.construct),
            expect=self._expectation(fields, base.expect),
            origin=self._origin(node),
            column=node.start_mark.column + 1,
        )
        if "inputs" not in fields:
            return [spec]
        reader = InputsReader(
            problems=self.problems,
            sizes={**sizes, **own},
            dtype=fields.get("dtype", defaults.get("dtype")),
            folder=self.folder,
        )
        read = reader.read(fields.nodes["inputs"])
        for name in own.keys() - reader.used:
            key = entries(fields.nodes["sizes"], Problems(self.shown))[name][0]
            self.problems.add(key, f"no shape of this case uses size {name!r}")
        used = {name: values for name, values in {**sizes, **own}.items() if name in reader.used}
        return [
            replace(spec.with_inputs(reader.bound(read, chosen), InputsFrom.SPEC), name=_joined(spec.name, label))
            for label, chosen in size_combinations(used)
        ]

    def _grad(self, fields: Fields, target: str, otherwise: str | None) -> str | None:
        return beside(target_located(fields.text("grad"), self.folder), target) if "grad" in fields else otherwise

    def _construct(self, fields: Fields, inherited: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...]:
        """The constructor's arguments by name."""
        if "construct" not in fields:
            return inherited
        reader = InputsReader(problems=self.problems, sizes={}, dtype=None, folder=self.folder)
        return reader.values(fields.nodes["construct"])

    def _overridden(self, spec: CheckSpec, fields: Fields) -> CheckSpec:
        self._require_reason(fields)
        for key in ("only", "skip"):
            for name in fields.names(key, ()):
                self._one_of(fields.nodes[key], name, CHECKS, "check")
        if fields.get("samples", 1) > MOST_SAMPLES:
            self.problems.add(fields.nodes["samples"], f"samples must be at most {MOST_SAMPLES}")
        if "dtype" in fields:
            self._one_of(fields.nodes["dtype"], fields.text("dtype"), DTYPES, "dtype")
        return replace(
            spec,
            nondeterminism=fields.get("nondeterminism", spec.nondeterminism),
            reason=fields.get("reason", spec.reason),
            device=fields.get("device", spec.device),
            seed=fields.get("seed", spec.seed),
            order=fields.get("order", spec.order),
            samples=fields.get("samples", spec.samples),
            budget=fields.get("budget", spec.budget),
            only=fields.names("only", spec.only),
            skip=fields.names("skip", spec.skip),
            tags=fields.names("tags", spec.tags),
            allow=read_allow(fields, spec.allow, self.problems),
        )

    def _require_reason(self, fields: Fields) -> None:
        """Check that a nondeterminism is within its bound and has a reason."""
        given = fields.get("nondeterminism")
        if given is not None and not 0 < given <= MOST_NONDETERMINISM:
            self.problems.add(
                fields.nodes["nondeterminism"],
                f"nondeterminism must be above 0 and at most {MOST_NONDETERMINISM:g}, got {given:g}",
            )
        if given is not None and "reason" not in fields:
            self.problems.add(
                fields.nodes["nondeterminism"],
                "nondeterminism needs the key 'reason' next to it, as in reason: atomic additions",
            )
        if "reason" in fields and given is None and "allow" not in fields:
            self.problems.add(
                fields.nodes["reason"],
                "the key 'reason' belongs to 'nondeterminism' or 'allow', and neither is given",
            )

    def _expectation(self, fields: Fields, inherited: Expectation) -> Expectation:
        if "expect" not in fields and "findings" not in fields:
            return inherited
        verdict = fields.get("expect", inherited.verdict)
        findings = fields.names("findings", ())
        if "expect" in fields:
            self._one_of(fields.nodes["expect"], str(verdict), EXPECTATIONS, "expectation")
        for finding in findings:
            self._one_of(fields.nodes["findings"], finding, FINDINGS, "finding")
        if findings and verdict != "failed":
            self.problems.add(
                fields.nodes["findings"], f"the key 'findings' needs expect: failed, got expect: {verdict}"
            )
        return Expectation(verdict=str(verdict), findings=findings)

    def _one_of(self, node: yaml.Node, given: str, known: tuple[str, ...], noun: str) -> None:
        if given not in known:
            place = next((child for child in _items(node) if child.value == given), node)
            self.problems.add(place, f"unknown {noun} {given!r}{Fields.close(given, known)}")

    def _origin(self, node: yaml.Node) -> str:
        return f"{self.shown}:{node.start_mark.line + 1}"


def _items(node: yaml.Node) -> list[Any]:
    return list(node.value) if isinstance(node, yaml.SequenceNode) else [node]


def _joined(name: str | None, label: str) -> str | None:
    return " ".join(part for part in (name, label) if part) or None
