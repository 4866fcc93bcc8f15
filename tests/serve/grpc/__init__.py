"""gRPC: the clients' door, and workers.

Tests that open a port share one event loop: what grpcio has to tell of a connection may come after
the test that closed it, and must then find its loop open.
"""
