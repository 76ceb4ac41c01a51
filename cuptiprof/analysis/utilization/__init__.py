"""What the GPUs did with the time: busy with what, idle why."""
