"""Hooks of tensors, of several tensors and of saved tensors: recorded as the user registers and removes them."""

import functools
import sys
from dataclasses import dataclass, field
from typing import Any, final

from gradcli.traces import SourceSite
from gradcli.tracing.attributes import Patches
from gradcli.tracing.hooks import HookLog
from gradcli.tracing.modules import ModuleWatch
from gradcli.tracing.reading import Lens, maker_of
from gradcli.tracing.sites import OWN_FOLDER, called_by_user, site_of_frame, users_frame


@final
@dataclass(slots=True)
class HookWatch:
    """Gives every hook that the user registers a stand-in; `retained_late` are retain_grad calls after backward."""

    lens: Lens
    log: HookLog
    modules: ModuleWatch
    patches: Patches
    retained_late: dict[int, tuple[Any, int, SourceSite | None]] = field(default_factory=dict)

    def stand_in_for(self, tensor: Any) -> None:
        """Put stand-ins in place of the user's hooks that a tensor has already."""
        for entries, kind in (
            (tensor._backward_hooks, "tensor"),
            (getattr(tensor, "_post_accumulate_grad_hooks", None), "post-accumulate"),
        ):
            for key, hook in list((entries or {}).items()):
                made = self.log.stand_in(hook, kind, tensor)
                if made is not None and entries is not None:
                    self._insert(made, tensor)
                    made.place = entries, key
                    self.patches.entry(entries, key, made)

    def _insert(self, made: Any, tensor: Any) -> None:
        node = maker_of(tensor)
        if node is not None:
            made.sequence, made.node_name = node._sequence_nr(), type(node).__name__
            made.output = tensor.output_nr

    def install(self) -> None:
        """Start watching registrations and removals."""
        kind = self.lens.tensor_type
        self._watch_register(kind, "register_hook", "tensor")
        self._watch_register(kind, "register_post_accumulate_grad_hook", "post-accumulate")
        graph = self.lens.namespace.autograd.graph
        register = graph.register_multi_grad_hook

        @functools.wraps(register)
        def multi(tensors: Any, hook: Any, *args: Any, **keywords: Any) -> Any:
            site = site_of_frame(called_by_user(1))
            made = self.log.stand_in(hook, "multi-grad", multi, site)
            handle = register(tensors, made or hook, *args, **keywords)
            if made is not None:
                self.log.registered(made)
                self.log.by_handle |= {part.id: made for part in getattr(handle, "handles", ())}
            return handle

        self.patches.everywhere(graph, "register_multi_grad_hook", multi)
        saving = graph.saved_tensors_hooks
        make = saving.__init__

        @functools.wraps(make)
        def watched_init(context: Any, pack: Any, unpack: Any) -> None:
            packed = self.log.stand_in(pack, "pack", context)
            make(context, packed or pack, self.log.stand_in(unpack, "unpack", context) or unpack)

        self.patches.attribute(saving, "__init__", watched_init)
        self._watch_packing(saving)
        self._watch_removal()
        self._watch_retaining()

    def _watch_packing(self, saving: Any) -> None:
        """Note while tensors are saved through hooks: to read them would call those, and a checkpoint's run forward."""
        enter, leave = saving.__enter__, saving.__exit__

        @functools.wraps(enter)
        def entered(context: Any) -> Any:
            self.log.packing += 1
            self.log.has_packed = True
            return enter(context)

        @functools.wraps(leave)
        def left(context: Any, *args: object) -> Any:
            self.log.packing -= 1
            return leave(context, *args)

        self.patches.attribute(saving, "__enter__", entered)
        self.patches.attribute(saving, "__exit__", left)

    def _watch_removal(self) -> None:
        kind = self.lens.namespace.utils.hooks.RemovableHandle
        remove = kind.remove

        @functools.wraps(remove)
        def watched(handle: Any) -> None:
            caller = sys._getframe(1)
            if not caller.f_code.co_filename.startswith(OWN_FOLDER):
                self.modules.removing(handle, site_of_frame(users_frame(caller)))
            remove(handle)

        self.patches.attribute(kind, "remove", watched)

    def _watch_register(self, owner: Any, name: str, kind: str) -> None:
        register = getattr(owner, name)

        @functools.wraps(register)
        def watched(tensor: Any, hook: Any) -> Any:
            made = self.log.stand_in(hook, kind, tensor, site_of_frame(called_by_user(1)))
            if made is None:
                return register(tensor, hook)
            handle = register(tensor, made)
            self._insert(made, tensor)
            entries = handle.hooks_dict_ref()
            entries[handle.id] = hook
            made.place = entries, handle.id
            self.log.registered(made)
            self.patches.entry(entries, handle.id, made)
            return handle

        self.patches.attribute(owner, name, watched)

    def _watch_retaining(self) -> None:
        kind = self.lens.tensor_type
        retain = kind.retain_grad

        @functools.wraps(retain)
        def watched(tensor: Any) -> None:
            if self.log.pass_number and not self.log.running and not tensor.retains_grad:
                site = site_of_frame(users_frame(sys._getframe(1)))
                self.retained_late[id(tensor)] = (tensor, self.log.pass_number, site)
            retain(tensor)

        self.patches.attribute(kind, "retain_grad", watched)

    def late(self, tensor: Any) -> tuple[bool, SourceSite | None]:
        """Whether retain_grad was called on a tensor only after the last pass, and where."""
        found = self.retained_late.get(id(tensor))
        late = found is not None and found[1] == self.log.pass_number
        return late, found[2] if found is not None and late else None

    def clear(self) -> None:
        """Release every tensor."""
        self.retained_late.clear()
