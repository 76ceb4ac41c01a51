"""Training steps: when they were, what their time went to, which stand out."""
