"""What random programs found (``python -m torch_programs.random``), as small as it got."""

from __future__ import annotations

from torch_programs.planned import program_of
from torch_programs.plans import Part, Plan, Training
from torch_programs.programs import PROGRAMS

_LINEAR = Part("Linear")


def _found(kind: str, mode: str = "backward") -> Plan:
    """Between two other modules."""
    return Plan((Training(Part("Sequential", (_LINEAR, Part(kind, (_LINEAR,)), Part("Tanh"))), mode=mode),))


FOUND = {
    "writes_into_a_view": _found("view in place"),  # its operator makes two nodes
    "a_scripted_function": _found("scripted function"),  # torch differentiates it as one, before its first operator
    "a_scripted_function_after_another": Plan(
        (Training(Part("Sequential", (Part("scripted function", (Part("scripted function", (_LINEAR,)),)),))),)
    ),
    "a_checkpoint_up_to_a_module": _found("checkpoint up to a module"),  # the module's node asks for the whole function
    "gradients_come_together_in_a_hook": Plan(
        (Training(Part("Sequential", (Part("residual", (Part("hook of backward", (_LINEAR,)),)),))),)
    ),
    "a_hook_makes_nodes": _found("tensor hook", "penalty"),
}
PROGRAMS.update({name: program_of(plan) for name, plan in FOUND.items()})
