"""XLA's own convolution: what ours must equal."""

import jax


def native(x, weight, stride, padding):
    """(N, H, W, inputs) * (k, k, inputs, outputs) → (N, H', W', outputs)"""
    layout = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, weight, (stride,) * 2, [(padding,) * 2] * 2, dimension_numbers=layout)
