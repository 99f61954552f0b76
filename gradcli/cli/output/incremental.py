"""Reports that grow while a run goes on, so that nothing is lost with it, however it ends."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import final

from gradcli.reporters.ndjson import ndjson_case
from gradcli.results import CheckResult

_GROWING = (".json", ".ndjson")


@final
@dataclass(slots=True, kw_only=True)
class GrowingReport:
    """The file of one report: each case is appended as it ends, in the formats that allow it.

    The complete document takes its place at the end of the run; until then a JSON document lacks its end.
    """

    path: Path
    begun: bool = False
    failed: bool = False

    def add(self, result: CheckResult) -> None:
        """Append a case. A file that cannot be written is left alone: the end of the run says so."""
        if self.failed or self.path.suffix not in _GROWING:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a" if self.begun else "w", encoding="utf-8") as file:
                file.write(self._text(result))
        except OSError:
            self.failed = True
        self.begun = True

    def _text(self, result: CheckResult) -> str:
        if self.path.suffix == ".ndjson":
            return ndjson_case(result)
        case = json.dumps(result.to_dict(), allow_nan=False)
        return (
            f",\n{case}" if self.begun else f'{{"schema": "gradcli.report/1", "interrupted": true, "cases": [\n{case}'
        )
