"""PyTorch's operators and modules."""
