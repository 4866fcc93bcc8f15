"""Tests of the advisors, on scripted models."""
