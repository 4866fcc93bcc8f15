"""What retinue costs, measured beside a bare loop written by hand. `make bench` runs it."""
