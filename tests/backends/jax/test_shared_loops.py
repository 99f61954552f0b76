"""Loops outside of compiled functions: one program for equal loops, and never the program of another loop."""

import math

import numpy as np
import pytest

pytest.importorskip("jax", reason="the jax backend needs JAX")


@pytest.fixture(autouse=True)
def _in_64_bits():
    from gradcli.backends.jax.configuration import in_64_bits

    with in_64_bits():
        yield


def lowered(call):
    """What a call returns, and how many programs JAX lowered for it."""
    import jax.monitoring

    seen = []

    def listener(event, duration, **_):
        seen.append(event)

    jax.monitoring.register_event_duration_secs_listener(listener)
    try:
        result = call()
    finally:
        jax.monitoring.clear_event_listeners()
    return result, sum(event.endswith("jaxpr_to_mlir_module_duration") for event in seen)


def shared():
    from gradcli.backends.jax.shared_loops import loops_compiled_once

    return loops_compiled_once()


def decayed(x, rate=0.5, turns=3):
    import jax

    return jax.lax.fori_loop(0, turns, lambda _, y: y * rate, x)


def halved(x):
    import jax

    return jax.lax.while_loop(lambda y: abs(y) > 1.0, lambda y: y / 2, x)


def branched(x, slope=2.0):
    import jax

    return jax.lax.cond(x > 0, lambda y: y * slope, lambda y: -y, x)


def summed(x):
    import jax

    return jax.lax.scan(lambda total, row: (total + row * x, total), 0.0, np.arange(3.0))[0]


def rectified(x):
    import jax

    return jax.lax.fori_loop(0, 2, lambda _, y: jax.nn.relu(y) * 2 + 1, x)  # relu has a custom_jvp


@pytest.mark.parametrize("function", [decayed, halved, branched, summed, rectified])
def test_equal_loops_are_lowered_once_and_give_what_jax_gives(function):
    import jax

    wanted = [float(function(jax.numpy.asarray(x))) for x in (3.0, 5.0, -7.0)]
    with shared():
        float(function(jax.numpy.asarray(2.0)))
        found, programs = lowered(lambda: [float(function(jax.numpy.asarray(x))) for x in (3.0, 5.0, -7.0)])
    assert found == wanted
    assert programs == 0
    _, programs = lowered(lambda: function(jax.numpy.asarray(3.0)))
    assert programs


def test_gradients_through_a_loop_are_those_of_jax():
    import jax

    x = jax.numpy.asarray(0.7)
    functions = (summed, decayed, rectified)
    wanted = tuple(float(jax.grad(f)(x)) for f in functions)
    with shared():
        assert [tuple(float(jax.grad(f)(x)) for f in functions) for _ in range(2)] == [wanted] * 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"rate": 0.1}, {"rate": math.nextafter(0.1, 1.0)}),
        ({"turns": 3}, {"turns": 4}),
        ({"rate": 0.5}, {"rate": -0.5}),
    ],
)
def test_loops_that_differ_in_one_number_have_their_own_programs(one, other):
    import jax

    x = jax.numpy.asarray(1.0)
    wanted = [float(decayed(x, **kind)) for kind in (one, other)]
    assert wanted[0] != wanted[1]
    with shared():
        assert [float(decayed(x, **kind)) for kind in (one, other, one, other)] == wanted * 2


def test_shapes_and_precisions_have_their_own_programs():
    import jax.numpy as jnp

    with shared():
        for x in (jnp.ones(2), jnp.ones(3), jnp.ones(3, "float32"), jnp.ones(2)):
            found = decayed(x)
            assert (found.shape, found.dtype) == (x.shape, x.dtype)
            assert np.array_equal(found, np.full(x.shape, 0.125))


def test_an_array_that_a_compiled_step_closes_over_is_not_taken_from_another_call():
    import jax
    import jax.numpy as jnp

    def shifted(x, shift):
        step = jax.jit(lambda y: y + shift)
        return jax.lax.fori_loop(0, 2, lambda _, y: step(y), x)

    with shared():
        for value in (1.0, 2.0, 3.0):
            shift = jnp.full(3, value)
            assert np.array_equal(shifted(jnp.zeros(3), shift), np.full(3, 2 * value))


def test_a_callback_is_that_of_its_own_call():
    import jax
    import jax.numpy as jnp

    def called_back(x, factor):
        like = jax.ShapeDtypeStruct((), x.dtype)
        return jax.lax.fori_loop(0, 2, lambda _, y: jax.pure_callback(lambda v: np.asarray(v) * factor, like, y), x)

    with shared():
        assert [float(called_back(jnp.asarray(1.0), float(f))) for f in (2, 3, 4, 5)] == [4.0, 9.0, 16.0, 25.0]


def test_a_loop_runs_step_by_step_where_compilation_is_off():
    import jax

    steps = []

    def counted(x):
        return jax.lax.fori_loop(0, 3, lambda _, y: steps.append(1) or y * 2, x)

    with shared(), jax.disable_jit():
        assert float(counted(jax.numpy.asarray(1.0))) == 8.0
        assert float(branched(jax.numpy.asarray(1.0))) == 2.0
    assert len(steps) == 3


def test_jax_has_its_own_ways_back_after_an_error():
    from jax.extend.core.primitives import cond_p, scan_p, while_p

    before = [loop.impl for loop in (while_p, scan_p, cond_p)]

    def fail():
        with shared(), shared():
            assert while_p.impl is not before[0]
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert [loop.impl for loop in (while_p, scan_p, cond_p)] == before


def test_more_loops_than_are_kept_are_all_right(monkeypatch):
    import jax.numpy as jnp

    from gradcli.backends.jax import shared_loops

    monkeypatch.setattr(shared_loops, "_KEPT", 2)
    x = jnp.asarray(1.0)
    with shared():
        for _ in range(2):
            for turns in range(1, 5):
                assert float(decayed(x, 0.5, turns)) == 0.5**turns
