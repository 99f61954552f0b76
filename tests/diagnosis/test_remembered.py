"""A gradient that depends on what an earlier call left in a cache is named by the cache, and by nothing else."""

import pytest

from benchmarks.fix.corpus import Specimen
from benchmarks.fix.run import named

HEAD = "import functools\n\nfrom gradcli import engine as torch\nfrom gradcli.engine.autograd import Function\n\n"
CACHED = (
    "_cache = {}\n\n\nclass Own(Function):\n    @staticmethod\n    def forward(ctx, x):\n"
    "        if x.shape not in _cache:\n            _cache[x.shape] = torch.exp(x)\n"
    "        ctx.key = x.shape\n        return torch.exp(x)\n\n"
    "    @staticmethod\n    def backward(ctx, g):\n        return g * _cache[ctx.key]\n"
)
BY_HELPER = (
    "@functools.lru_cache\ndef slope(shape):\n    return torch.exp(Own.last)\n\n\n"
    "class Own(Function):\n    last = None\n\n    @staticmethod\n    def forward(ctx, x):\n        Own.last = x\n"
    "        ctx.save_for_backward(x)\n        return torch.exp(x)\n\n"
    "    @staticmethod\n    def backward(ctx, g):\n        (x,) = ctx.saved_tensors\n"
    "        return g * slope(x.shape)\n"
)
TABLE = (
    "TABLE = {'power': 3}\n\n\nclass Own(Function):\n    @staticmethod\n    def forward(ctx, x):\n"
    "        ctx.save_for_backward(x)\n        return x ** TABLE.get('power', 2)\n\n"
    "    @staticmethod\n    def backward(ctx, g):\n        (x,) = ctx.saved_tensors\n        return g * 2 * x\n"
)


def said(text: str, folder) -> tuple[str, ...]:
    whole = HEAD + text
    return named(Specimen("own", "", "engine", "Own", whole, whole, frozenset()), folder)[0].sentences


@pytest.mark.parametrize(("text", "cache"), [(CACHED, "_cache"), (BY_HELPER, "slope")])
def test_a_cache_that_serves_other_inputs_is_named(text, cache, tmp_path):
    (sentence,) = said(text, tmp_path)
    assert f"the returned gradient is right if `{cache}` is empty at each call" in sentence
    assert sentence.endswith("[stateful]")


def test_a_table_that_is_only_read_is_not_to_blame(tmp_path):
    (sentence,) = said(TABLE, tmp_path)
    assert "TABLE" not in sentence
    assert sentence.endswith("[wrong-factor]")


def test_what_was_in_the_cache_is_put_back(tmp_path):
    table = "kept = []\n"
    text = CACHED.replace("_cache = {}", table + "_cache = {}").replace(
        "        ctx.key", "        kept.append(dict(_cache))\n        ctx.key"
    )
    (sentence,) = said(text, tmp_path)
    assert "`_cache`" in sentence
