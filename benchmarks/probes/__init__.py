"""Small questions to the hardware, each answered in a process of its own."""
