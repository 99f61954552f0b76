"""Which saved memory is still in use after a backward pass, and what keeps it."""

from collections.abc import Sequence
from types import FrameType

from gradcli.traces import Held, SourceSite
from gradcli.tracing.graph import NodeRecord
from gradcli.tracing.memory.peak import Key
from gradcli.tracing.memory.saved import LedgerWatch
from gradcli.tracing.reading import Lens
from gradcli.tracing.referrers import Holders


def hold(ledger: LedgerWatch, records: Sequence[NodeRecord], lens: Lens, frames: Sequence[FrameType]) -> None:
    """Note in the ledger who holds what: the graph itself, attributes of ctx, and the program's own names."""
    wanted = ledger.activations()
    if ledger.retained:
        owned = {key for node in range(len(records)) for key in ledger.owned(node) if key in wanted}
        _note(ledger, "graph", "the graph, because it was retained", owned)
    on_ctx: dict[tuple[str, SourceSite | None], set[Key]] = {}
    for saved, key in ledger.with_keys():
        if saved.on_ctx and key in wanted:
            record = records[saved.node]
            on_ctx.setdefault((f"`{saved.name}` of {record.name}", record.site), set()).add(key)
    for (holder, site), keys in on_ctx.items():
        _note(ledger, "ctx", holder, keys, site)
    for holder, keys in Holders(lens, frames).of(wanted).items():
        _note(ledger, "name", holder, keys)


def _note(ledger: LedgerWatch, by: str, holder: str, keys: set[Key], site: SourceSite | None = None) -> None:
    if keys:
        entries = sorted((ledger.entries[key] for key in keys), key=lambda entry: entry.number)
        ledger.held.append(
            Held(
                by=by,
                holder=holder,
                storages=tuple(entry.number for entry in entries),
                bytes=sum(entry.bytes for entry in entries),
                site=site,
            )
        )
