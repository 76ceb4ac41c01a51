"""What a kernel's counters say of it: facts of its launch, Nsight Compute's rules, its roofline."""
