"""What a case leaves out after an attempt that its process did not survive."""

from dataclasses import replace

from gradcli.frozen import dataclass
from gradcli.watchdog.status import StatusReading

RESIZED = "calls at other sizes"
"""What stands among the optional phases for calls with other sizes than those asked for, whatever phase they are in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Omissions:
    """What a case leaves out because the process of an earlier attempt did not survive it: phases, and calls by number.

    Calls are numbered through the case, which runs the same in each attempt up to the first that is left out. `why`
    says how the processes ended.
    """

    phases: frozenset[str] = frozenset()
    calls: frozenset[int] = frozenset()
    why: str = ""

    def after(self, status: StatusReading, how: str) -> "Omissions | None":
        """What the next attempt leaves out after a process that ended as `how` says; None if nothing can help.

        If no call at other inputs was running, an optional phase that ran before, or a call at other sizes, may have
        damaged the process's memory: compiled code may write past the end of what it was not made for.
        """
        why = "; ".join(dict.fromkeys([*filter(None, self.why.split("; ")), how]))
        if status.call and not status.asked and status.phase not in status.optional:
            return replace(self, calls=self.calls | {status.call}, why=why)
        phases = {status.phase} if status.call and not status.asked else status.optional
        return None if phases <= self.phases else replace(self, phases=self.phases | phases, why=why)
