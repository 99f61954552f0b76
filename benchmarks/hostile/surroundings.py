"""Specs that attack who reads them, and surroundings in which a command has to end well."""

_GOOD = b"target: good.py:Right\ncases: [{inputs: {x: {shape: [3]}}}]\n"


def _case(text: str) -> bytes:
    return f"target: good.py:Right\ncases:\n  - {text}\n".encode()


SPECS: dict[str, tuple[bytes, int]] = {
    "laughs": (
        b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
            f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n".encode() for n in range(9)
        ), 2,
    ),
    "itself": (b"target: &a [*a]\n", 2),
    "tag": (b"target: !!python/object/apply:os._exit [0]\n", 2),
    "tag_name": (b"target: !!python/name:os.abort\n", 2),
    "tag_binary": (b"target: !!binary aGVsbG8=\ncases: []\n", 2),
    "duplicate": (_GOOD + b"target: good.py:Wrong\n", 2),
    "duplicate_input": (_case("inputs: {x: {shape: [3]}, x: {shape: [2]}}"), 2),
    "merge": (b"base: &b {shape: [3]}\ntarget: good.py:Right\ncases: [{inputs: {x: {<<: *b}}}]\n", 2),
    "nul": (b"target: good.py:Right\x00\n", 2),
    "binary": (bytes(range(256)) * 40, 2),
    "latin": ("target: good.py:Right # \u00fc\n".encode("latin-1"), 2),
    "utf16": ("target: good.py:Right\ncases: [{inputs: {x: {shape: [3]}}}]\n".encode("utf-16"), 2),
    "bom": (b"\xef\xbb\xbf" + _GOOD, 0),
    "crlf": (_GOOD.replace(b"\n", b"\r\n"), 0),
    "empty": (b"", 2),
    "comment": (b"# nothing\n", 2),
    "list": (b"- 1\n- 2\n", 2),
    "number": (b"3\n", 2),
    "text": (b"'" + b"x" * 100_000, 2),
    "deep": (b"target: " + b"[" * 20_000, 2),
    "deep_blocks": (b"".join(b" " * n + b"a:\n" for n in range(3000)), 2),
    "long_key": (b"x" * 200_000 + b": 1\n", 2),
    "many_documents": (b"---\n" * 50_000, 2),
    "huge_shape": (_case("inputs: {x: {shape: [99999999999]}}"), 2),
    "huge_number": (_case("inputs: {x: {shape: [" + "9" * 5000 + "]}}"), 2),
    "negative_shape": (_case("inputs: {x: {shape: [-3]}}"), 2),
    "float_shape": (_case("inputs: {x: {shape: [1e400]}}"), 2),
    "nan_shape": (_case("inputs: {x: {shape: [.nan]}}"), 2),
    "bool_shape": (_case("inputs: {x: {shape: [true]}}"), 2),
    "text_shape": (_case("inputs: {x: {shape: nonsense}}"), 2),
    "huge_seed": (_case("{seed: 1" + "0" * 400 + ", inputs: {x: {shape: [3]}}}"), 2),
    "negative_seed": (_case("{seed: -1, inputs: {x: {shape: [3]}}}"), 2),
    "nan_budget": (_case("{budget: .nan, inputs: {x: {shape: [3]}}}"), 2),
    "inf_budget": (_case("{budget: .inf, inputs: {x: {shape: [3]}}}"), 2),
    "no_order": (_case("{order: 0, inputs: {x: {shape: [3]}}}"), 2),
    "date": (_case("inputs: {x: {shape: 2001-01-01}}"), 2),
    "name_escapes": (_case('{name: "\\x1b[2J\\n::error::x", inputs: {x: {shape: [3]}}}'), 0),
    "name_long": (_case("{name: " + "n" * 20_000 + ", inputs: {x: {shape: [3]}}}"), 0),
    "name_list": (_case("{name: [a, b], inputs: {x: {shape: [3]}}}"), 2),
    "npz_missing": (_case('inputs: {x: {domain: "npz:/nowhere/x.npz"}}'), 2),
    "npz_device": (_case('inputs: {x: {domain: "npz:/dev/zero"}}'), 2),
    "npz_folder": (_case('inputs: {x: {domain: "npz:."}}'), 2),
    "sizes_product": (
        b"target: good.py:Right\nsizes: {a: [" + b",".join(b"%d" % n for n in range(1, 400)) + b"], b: ["
        + b",".join(b"%d" % n for n in range(1, 400)) + b"]}\ncases: [{inputs: {x: {shape: [a, b]}}}]\n", 2,
    ),
    "target_escapes": (b'target: "good.py:\\x1b[2J\\nRight"\n', 2),
    "target_itself": (b"target: attack.yaml\n", 2),
    "target_code": (b"target: \"__import__('os')._exit(0)\"\n", 2),
    "target_number": (b"target: 3\n", 2),
    "expect_unknown": (_GOOD + b"expect: [[[]]]\n", 2),
    "only_number": (_case("{only: [3], inputs: {x: {shape: [3]}}}"), 2),
}  # fmt: skip
"""The file, and the exit code of a run with a good one beside it."""

_CHECK = "GRADCLI check good.py:Right -i x=3"
_LOOPS = "printf 'from good import Right\\nclass F(Right):\\n    @staticmethod\\n    def forward(ctx, x):\\n        while True: pass\\n' > loops.py; "  # noqa: E501 - a program
SURROUNDINGS: dict[str, tuple[str, tuple[int, ...], str]] = {
    "full disk": (f"{_CHECK} > /dev/full", (2,), "No space left"),
    "full disk json": (f"{_CHECK} --format json > /dev/full", (2,), "No space left"),
    "full stderr": (f"{_CHECK} 2> /dev/full", (0,), "1 passed"),
    "broken pipe": (f"{_CHECK} --format json | true; exit ${{PIPESTATUS[0]}}", (0,), ""),
    "broken stderr": (f"({_CHECK} 2>&1 >&3 | true) 3>&1; exit 0", (0,), ""),
    "closed stdout": (f"{_CHECK} >&-", (0,), ""),
    "closed stderr": (f"{_CHECK} 2>&-", (0,), "1 passed"),
    "closed all": (f"{_CHECK} <&- >&- 2>&-", (0,), ""),
    "read-only stdout": (f"{_CHECK} 1< /dev/null", (0, 2), ""),
    "symlink loop": ("ln -s loop.py loop.py; GRADCLI check loop.py:F", (2,), "loop.py"),
    "symlink loop folder": ("ln -s . specs; GRADCLI check", (2, 5), ""),
    "symlink spec": ("ln -s a.yaml b.yaml; ln -s b.yaml a.yaml; GRADCLI check a.yaml", (2,), "a.yaml"),
    "folder as module": ("mkdir m.py; GRADCLI check m.py:F", (2,), "directory"),
    "folder as spec": ("mkdir a.yaml; GRADCLI check a.yaml", (2, 5), ""),
    "fifo as module": ("mkfifo m.py; timeout 60 GRADCLI check m.py:F", (2,), "m.py"),
    "fifo as spec": ("mkfifo a.yaml; timeout 60 GRADCLI check a.yaml", (2,), "a.yaml"),
    "device as module": ("ln -s /dev/zero m.py; timeout 60 GRADCLI check m.py:F", (2,), "m.py"),
    "empty name": ("GRADCLI check ''", (2,), "empty"),
    "colon alone": ("GRADCLI check :", (2,), ""),
    "dots": ("GRADCLI check ..:F", (2,), ""),
    "not utf-8": ("cp good.py $'\\xff.py'; GRADCLI check $'\\xff.py:Right' -i x=3", (0, 2), ""),
    "not utf-8 name": ("GRADCLI check $'good.py:\\xff'", (2,), "good.py"),
    "newline in name": ("cp good.py $'a\\nb.py'; GRADCLI check $'a\\nb.py:Right' -i x=3", (0,), "1 passed"),
    "spaces": ("mkdir 'a b'; cp good.py 'a b/c d.py'; GRADCLI check 'a b/c d.py:Right' -i x=3", (0,), "1 passed"),
    "long name": ("GRADCLI check $(printf 'x%.0s' {1..5000}).py:F", (2,), ""),
    "deleted folder": (f"mkdir d; cd d; rmdir ../d; {_CHECK}", (2,), "working directory"),
    "deleted later": ("mkdir d; cp good.py d; cd d; printf 'import shutil, os; shutil.rmtree(os.getcwd())\\nfrom gradcli.engine.autograd import Function\\nclass F(Function):\\n    @staticmethod\\n    def forward(ctx, x): return x * 2\\n    @staticmethod\\n    def backward(ctx, g): return g * 2\\n' > gone.py; GRADCLI check gone.py:F good.py:Wrong -i x=3", (1, 2, 3), "gone.py"),  # noqa: E501 - a program
    "hidden cache": ("mkdir .gradcli; chmod 0 .gradcli; GRADCLI check good.py:Wrong -i x=3", (1,), "wrong-factor"),
    "file for cache": ("touch .gradcli; GRADCLI check good.py -i x=3", (1,), "wrong-factor"),
    "report in file": ("touch r; GRADCLI check good.py:Right -i x=3 --report r/x.json", (2,), "r"),
    "report is folder": ("mkdir r.json; GRADCLI check good.py:Right -i x=3 --report r.json", (2,), "r.json"),
    "report suffix": (f"{_CHECK} --report r.exe", (2,), "r.exe"),
    "shadowed json": ("echo 'raise SystemExit(0)' > json.py; " + _CHECK, (0,), "1 passed"),
    "shadowed numpy": ("echo 'raise SystemExit(0)' > numpy.py; " + _CHECK, (0,), "1 passed"),
    "shadowed torch": ("echo 'x = 1' > torch.py; " + _CHECK, (0,), "1 passed"),
    "shadowed gradcli": ("mkdir gradcli; touch gradcli/__init__.py; cp good.py h.py; PYTHONSAFEPATH=1 GRADCLI check h.py:Right -i x=3", (0,), "1 passed"),  # noqa: E501 - a program
    "one name twice": ("mkdir a b; printf 'K = 2' > a/u.py; printf 'K = 3' > b/u.py; for f in a b; do printf 'from u import K\\nfrom gradcli.engine.autograd import Function\\nclass F(Function):\\n    @staticmethod\\n    def forward(ctx, x):\\n        ctx.save_for_backward(x); return x * x\\n    @staticmethod\\n    def backward(ctx, g):\\n        (x,) = ctx.saved_tensors; return K * x * g\\n' > $f/m.py; done; GRADCLI check a/m.py b/m.py -i x=3 --format json | python3 -c 'import json, sys; print([c[\"verdict\"] for c in json.load(sys.stdin)[\"cases\"]])'", (0,), "['passed', 'failed']"),  # noqa: E501 - a program
    "interrupted": (_LOOPS + "timeout -s INT 6 GRADCLI check good.py:Wrong loops.py:F -i x=3 --format json --report r.json; code=$?; grep -c '\"interrupted\": true' r.json; exit $code", (130, 124), "1"),  # noqa: E501 - a program
    "terminated": (_LOOPS + "GRADCLI check good.py:Wrong loops.py:F -i x=3 --format json & sleep 5; kill -TERM $!; wait $!", (143,), '"interrupted": true'),  # noqa: E501 - a program
    "hung up": (_LOOPS + "GRADCLI check good.py:Wrong loops.py:F -i x=3 --format json & sleep 5; kill -HUP $!; wait $!", (129,), '"interrupted": true'),  # noqa: E501 - a program
    "twice": (_LOOPS + "GRADCLI check loops.py:F -i x=3 --format json & sleep 4; kill -TERM $!; kill -TERM $!; kill -INT $!; wait $!", (143, 130), '"interrupted": true'),  # noqa: E501 - a program
    "at once": (_CHECK + " & sleep 0.3; kill -TERM $!; wait $!", (143,), ""),
    "no home": ("env -u HOME -u USER -u PATH " + _CHECK, (0,), "1 passed"),
    "no tmp": ("TMPDIR=/nonexistent " + _CHECK, (0,), "1 passed"),
    "no columns": ("COLUMNS=-5 LINES=x " + _CHECK + " --format table", (0,), "good.py:Right"),
    "bad locale": ("LC_ALL=nonsense PYTHONIOENCODING=ascii " + _CHECK, (0,), "1 passed"),
    "bad encoding": ("PYTHONIOENCODING=nonsense " + _CHECK, (0, 1), ""),
    "optimised": ("PYTHONOPTIMIZE=2 " + _CHECK, (0,), "1 passed"),
    "hash seeds": ("PYTHONHASHSEED=0 " + _CHECK, (0,), "1 passed"),
    "isolated": ("PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=error " + _CHECK, (0,), "1 passed"),
    "tracing": ("PYTHONTRACEMALLOC=1 PYTHONFAULTHANDLER=1 " + _CHECK, (0,), "1 passed"),
    "few files": ("ulimit -n 24; " + _CHECK, (0,), "1 passed"),
    "too few files": ("ulimit -n 8; " + _CHECK, (2,), "Too many open files"),
    "high order": (_CHECK + " --order 1" + "0" * 17, (2,), "a whole number from 1 to 9"),
    "no core": ("ulimit -c 0; ulimit -f 0; GRADCLI check good.py:Right -i x=3", (0, 2), ""),
    "few processes": (_CHECK + " -j 50", (0,), "1 passed"),
    "bad jobs": (_CHECK + " -j 0", (2,), ""),
    "bad shard": (_CHECK + " --shard 3/2", (2,), ""),
    "bad timeout": (_CHECK + " --timeout nan", (2,), ""),
    "inf timeout": (_CHECK + " --timeout inf", (2,), ""),
    "huge seed": (_CHECK + " --seed " + "9" * 400, (0, 2), ""),
    "bad regex": (_CHECK + " -k '((('", (2,), ""),
    "bad input": ("GRADCLI check good.py:Right -i x=3,low=nan,high=$(printf '9%.0s' {1..500})", (0, 2), ""),
    "bad literal": ("GRADCLI check good.py:Right -a \"x=$(printf '[%.0s' {1..3000})\"", (2,), ""),
    "literal call": ("GRADCLI check good.py:Right -a \"x=__import__('os')._exit(0)\"", (2,), ""),
    "bad config": ("printf '[tool.gradcli]\\njobs = \"many\"\\n' > pyproject.toml; " + _CHECK, (2,), "pyproject.toml"),
    "broken config": ("printf '[tool.gradcli\\n' > pyproject.toml; " + _CHECK, (2,), "pyproject.toml"),
    "binary config": ("head -c 5000 /dev/urandom > pyproject.toml; " + _CHECK, (2,), "pyproject.toml"),
    "config folder": ("mkdir pyproject.toml; " + _CHECK, (0, 2), ""),
    "replay nothing": ("GRADCLI replay nothing.json", (2,), "nothing.json"),
    "replay folder": ("GRADCLI replay .", (2,), ""),
    "merge nothing": ("echo '{}' > a.json; GRADCLI merge a.json", (2,), "a.json"),
    "merge binary": ("head -c 5000 /dev/urandom > a.json; GRADCLI merge a.json", (2,), "a.json"),
    "explain nothing": ("GRADCLI explain $'\\e[2Jnothing'", (2,), ""),
}  # fmt: skip
"""A shell's script in a folder with `good.py`, the exit codes that are right, and what the output holds."""
