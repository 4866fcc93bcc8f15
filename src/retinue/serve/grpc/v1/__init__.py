"""The messages and services: `.proto` files, and the stubs that `make stubs` makes of them."""
