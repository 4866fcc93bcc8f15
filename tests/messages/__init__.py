"""Tests of messages, without I/O."""
