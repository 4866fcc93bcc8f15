"""What providers send and what they are sent, apart from everything else."""
