"""Where the GPU and its libraries are."""
