"""PyTorch's operators on the simulated GPU: a model of what they launch, and how they are told of it.

``calls`` (an operator call) -> ``operators``, ``products``, ``tensor_lists`` (what a GPU runs for it) -> ``launches`` (how long that
takes). ``dispatch_mode`` asks them under a running script, ``install`` puts that in place. Only ``dispatch_mode`` imports torch.
"""
