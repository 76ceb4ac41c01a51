"""The fused cells of LSTM and GRU, which torch calls on a GPU and has no host code for: the same formulas, forward and backward.

Layouts are torch's: gates of an LSTM i, f, g, o; of a GRU r, z, n. What backward needs is in the workspace.
"""

from __future__ import annotations

from typing import Any

import torch


def lstm_cell(input_gates: Any, hidden_gates: Any, cx: Any, input_bias: Any = None, hidden_bias: Any = None) -> Any:
    """aten::_thnn_fused_lstm_cell."""
    gates = input_gates + hidden_gates
    for bias in (input_bias, hidden_bias):
        if bias is not None:
            gates = gates + bias
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    return o * cy.tanh(), cy, torch.cat([i, f, g, o], 1)


def lstm_cell_backward(grad_hy: Any, grad_cy: Any, cx: Any, cy: Any, workspace: Any, has_bias: bool) -> Any:
    """aten::_thnn_fused_lstm_cell_backward_impl."""
    i, f, g, o = workspace.chunk(4, 1)
    grad_hy = torch.zeros_like(cy) if grad_hy is None else grad_hy
    through = grad_hy * o * (1 - cy.tanh() ** 2) + (0 if grad_cy is None else grad_cy)
    gates = torch.cat([
        through * g * i * (1 - i), through * cx * f * (1 - f), through * i * (1 - g * g), grad_hy * cy.tanh() * o * (1 - o),
    ], 1)  # fmt: skip
    return gates, through * f, gates.sum(0) if has_bias else torch.empty(0)


def gru_cell(input_gates: Any, hidden_gates: Any, hx: Any, input_bias: Any = None, hidden_bias: Any = None) -> Any:
    """aten::_thnn_fused_gru_cell."""
    of_input = input_gates if input_bias is None else input_gates + input_bias
    of_hidden = hidden_gates if hidden_bias is None else hidden_gates + hidden_bias
    ir, iz, in_ = of_input.chunk(3, 1)
    hr, hz, hn = of_hidden.chunk(3, 1)
    r, z = (ir + hr).sigmoid(), (iz + hz).sigmoid()
    n = (in_ + r * hn).tanh()
    return (1 - z) * n + z * hx, torch.cat([r, z, n, hx, hn], 1)


def gru_cell_backward(grad_hy: Any, workspace: Any, has_bias: bool) -> Any:
    """aten::_thnn_fused_gru_cell_backward."""
    r, z, n, hx, hn = workspace.chunk(5, 1)
    to_n = grad_hy * (1 - z) * (1 - n * n)
    to_z = grad_hy * (hx - n) * z * (1 - z)
    to_r = to_n * hn * r * (1 - r)
    of_input, of_hidden = torch.cat([to_r, to_z, to_n], 1), torch.cat([to_r, to_z, to_n * r], 1)
    nothing = torch.empty(0)
    return (
        of_input,
        of_hidden,
        grad_hy * z,
        of_input.sum(0) if has_bias else nothing,
        of_hidden.sum(0) if has_bias else nothing,
    )
