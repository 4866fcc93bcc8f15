"""What the benchmark needs to be fair: both sides do the same work, and a miss is told."""
