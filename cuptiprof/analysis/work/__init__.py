"""What ran on the GPUs: kernels, copies, sets, graphs, and the calls that launched them."""
