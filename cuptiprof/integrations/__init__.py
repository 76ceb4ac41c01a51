"""Faces of other people's frameworks. Each is a module that imports its framework; nothing here is imported unless the user does."""
