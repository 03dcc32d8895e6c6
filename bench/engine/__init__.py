"""What all benchmarks have in common."""
