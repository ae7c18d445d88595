import jax
import pytest

from planvec.training import compilation


@pytest.fixture(autouse=True)
def forget():
    yield
    compilation._knows_concurrent.cache_clear()


def test_options_that_this_xla_knows():
    for deterministic in (False, True):
        options = compilation.options(deterministic)
        assert jax.jit(lambda x: x + 1, compiler_options=options)(1) == 2
    assert compilation.CONCURRENT.items() <= compilation.options().items()
    assert compilation.DETERMINISTIC.items() <= compilation.options(deterministic=True).items()


def test_without_an_option_that_is_gone(monkeypatch):
    """Speed may be lost with a version of XLA; that results are the same every time may not."""
    compilation._knows_concurrent.cache_clear()
    monkeypatch.setattr(compilation, "CONCURRENT", {"xla_gpu_is_faster_still": True})
    assert compilation.options() == {} and compilation.options(deterministic=True) == compilation.DETERMINISTIC
