"""Results as files of other tools: a format a file or a room, chosen by suffix (formats.py)."""
