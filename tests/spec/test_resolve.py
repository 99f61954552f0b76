"""Targets are found in every form; what cannot be found or imported says why, and leaves nothing behind."""

import random
import sys
import types

import pytest

from gradcli.errors import TargetError, TargetImportError
from gradcli.spec.resolve import names_in, resolve


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    known = set(sys.modules)

    def write(**files):
        for name, text in files.items():
            path = tmp_path / name.replace("__in__", "/").replace("_py", ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    yield write
    for name in set(sys.modules) - known:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def refused(target, kind=TargetError):
    with pytest.raises(kind) as caught:
        resolve(target)
    return caught.value


def test_a_module_a_file_and_a_dotted_name(folder):
    folder(alpha_py="class A:\n    class B:\n        x = 1\n")
    by_file, by_module = resolve("alpha.py:A.B"), resolve("alpha:A")
    assert by_file.object.x == 1
    assert (by_file.name, by_module.name) == ("A.B", "A")
    assert by_module.module_name == "alpha"
    assert by_file.file == by_module.file


def test_the_standard_library_and_packages_are_targets_too():
    assert resolve("math:pi").object == pytest.approx(3.14159265)
    assert resolve("gradcli.examples.linear:LinearFunction").module_name == "gradcli.examples.linear"


def test_one_file_gives_one_module(folder):
    root = folder(beta_py="class A: pass\n")
    one = resolve("beta.py:A").object
    assert resolve("./beta.py:A").object is one
    assert resolve(f"{root}/beta.py:A").object is one


def test_a_file_already_imported_by_name_is_not_imported_again(folder):
    folder(gamma_py="class A: pass\n")
    assert resolve("gamma:A").object is resolve("gamma.py:A").object


def test_a_file_called_like_a_standard_module_shadows_nothing(folder):
    folder(random_py="class R: pass\n", other_py="import random\nclass O:\n    draw = staticmethod(random.random)\n")
    assert resolve("random.py:R").object.__name__ == "R"
    assert 0 <= resolve("other.py:O").object.draw() < 1
    assert sys.modules["random"] is random


def test_a_file_may_import_its_neighbours_and_relatives(folder):
    folder(
        near_py="import helper_of_near\nclass N:\n    y = helper_of_near.y\n", helper_of_near_py="y = 5\n",
        pkgx__in____init___py="", pkgx__in__a_py="from . import b\nclass K:\n    z = b.z\n", pkgx__in__b_py="z = 7\n",
    )  # fmt: skip
    (folder() / "pkgx").mkdir(exist_ok=True)
    (folder() / "pkgx" / "__init__.py").write_text("")
    assert resolve("near.py:N").object.y == 5
    by_file = resolve("pkgx/a.py:K")
    assert by_file.object.z == 7
    assert by_file.object is resolve("pkgx.a:K").object


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("goood.py:A", "no file goood.py"),
        ("delta.p:A", "no module named 'delta.p'"),
        ("nodir/x.py:A", "no folder nodir"),
        ("delt:A", "did you mean delta?"),
        ("delta:Aa", "did you mean 'Aaa'?"),
        ("delta:Q", "it defines Aaa, Bbb"),
        ("delta:Aaa.nope", "delta:Aaa"),
        ("delta", "expected a name after a colon, as in delta:Name"),
        ("delta.py", "expected a name after a colon, as in delta.py:Name"),
        ("x y:A", "is not a target"),
        (":A", "is not a target"),
        ("json.decoder.q:A", "is a module and not a package"),
        ("./:A", "is a directory"),
        ("delta:Bbb.boom", "raised RuntimeError: boom"),
        ("mathh:pi", "did you mean math?"),
    ],
)
def test_what_is_not_found_says_what_was_looked_for_and_what_is_close(folder, target, said):
    folder(
        delta_py="class Aaa: pass\n"
        "class _Meta(type):\n    @property\n    def boom(cls): raise RuntimeError('boom')\n"
        "class Bbb(metaclass=_Meta): pass\n"
    )
    error = refused(target)
    assert said in str(error)
    assert not isinstance(error, TargetImportError)


def test_a_missing_file_names_a_close_one(folder):
    folder(epsilon_py="")
    assert "did you mean 'epsilon.py'" in str(refused("epsilom.py:A"))


FLATTENED = (
    "# Inherit from Function class LinearFunction(Function): @staticmethod def forward(ctx, input, weight): "
    "ctx.save_for_backward(input, weight) return input.mm(weight.t())\n"
)


def test_a_flattened_listing_is_recognised(folder):
    folder(mymodule_py=FLATTENED)
    said = (
        "mymodule.py defines nothing: line 1 has 'class LinearFunction' inside a comment; line breaks are missing in "
        "that comment"
    )
    assert str(refused("mymodule:LinearFunction")) == said
    assert str(refused("mymodule.py:LinearFunction")) == said
    with pytest.raises(TargetError, match="defines nothing"):
        names_in("mymodule.py")


def test_a_commented_out_class_is_found_beside_others(folder):
    folder(zeta_py="class A: pass\n# class Gone: pass\n")
    assert "line 2 has 'class Gone' inside a comment" in str(refused("zeta:Gone"))


PACKED = (
    "class A(object): def forward(ctx, x): ctx.save_for_backward(x) return x.clamp(min=0) "
    "@staticmethod def backward(ctx, grad_output): return grad_output.clone()\n"
)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("class L(Function): pass\n", "from torch.autograd import Function"),
        ("x = np.zeros(3)\n", "import numpy as np"),
        ("class A:\n    def __init__(self): supper().__init__()\nA()\n", "did you mean 'super'?"),
        ("def f():\n    output_features = 3\n    return output_featuers\nf()\n", "did you mean 'output_features'?"),
        ("import nothere_at_all\n", "nothere_at_all"),
        ("import math\nmath.sqrtt(3)\n", "did you mean 'sqrt'?"),
        ("from math import coss\n", "did you mean 'cos'?"),
        ("class A:\ndef f(): return 1\n", "indentation"),
        (PACKED, "line breaks were lost"),
        ("import sys\nsys.exit(3)\n", "SystemExit"),
        ("raise ValueError\n", "without a message"),
    ],
)  # fmt: skip
def test_an_import_error_shows_the_users_frames_and_a_hint(folder, text, hint):
    folder(eta_py=text)
    for target in ("eta:A", "eta.py:A"):
        error = refused(target, TargetImportError)
        assert hint in str(error)
        assert "eta.py" in error.user_traceback
        assert "gradcli" not in error.user_traceback
        assert "importlib" not in error.user_traceback
    assert not [name for name in sys.modules if name == "eta" or name.startswith("eta_")]


def test_a_chained_error_shows_every_link_without_our_frames(folder):
    folder(theta_py="try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise ValueError('bad') from error\n")
    shown = refused("theta.py:A", TargetImportError).user_traceback
    assert "ZeroDivisionError" in shown
    assert "ValueError: bad" in shown
    assert "importlib" not in shown


def test_a_file_can_be_imported_after_it_was_repaired(folder):
    root = folder(iota_py="1 / 0\n")
    refused("iota.py:A", TargetImportError)
    (root / "iota.py").write_text("class A: pass  # repaired\n")
    assert resolve("iota.py:A").object.__name__ == "A"


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_is_not_swallowed(folder):
    folder(kappa_py="raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        resolve("kappa.py:A")
    assert not [name for name in sys.modules if name.startswith("kappa")]


def test_the_main_part_of_a_script_does_not_run(folder):
    folder(lambda_py="class A: pass\nif __name__ == '__main__':\n    raise SystemExit(9)\n")
    assert resolve("lambda.py:A").object.__name__ == "A"


def test_names_in_are_the_modules_own_in_order(folder):
    folder(
        mu_py="from math import sqrt\nfrom collections import OrderedDict\nimport json\n"
        "class B: pass\ndef a(): return 1\nclass _Hidden: pass\nx = 3\n"
    )
    assert names_in("mu.py") == ["B", "a", "_Hidden"]
    assert names_in("mu") == ["B", "a", "_Hidden"]
    assert names_in("mu:") == ["B", "a", "_Hidden"]


def test_a_private_name_is_suggested_for_a_private_name_alone(folder):
    folder(omicron_py="class _Hidden: pass\nclass Shown: pass\n")
    with pytest.raises(TargetError, match="did you mean '_Hidden'"):
        resolve("omicron.py:_Hiden")
    with pytest.raises(TargetError, match=r"it defines Shown$"):
        resolve("omicron.py:Other")


def test_an_object_that_refuses_every_attribute_is_no_definition(folder):
    folder(nu_py="class P:\n    def __getattribute__(self, n): raise RuntimeError(n)\np = P()\n")
    assert names_in("nu.py") == ["P"]


def test_the_result_names_its_module(folder):
    folder(xi_py="class A: pass\n")
    found = resolve("xi.py:A")
    assert isinstance(found.module, types.ModuleType)
    assert found.file is not None
    assert found.file.endswith("xi.py")
