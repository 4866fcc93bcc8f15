"""The house rules, kept by tests that read the sources.

Each check is a function from a tree of files to faults, one sentence each, and is tested itself
with a small tree that breaks the rule. There are no lists of exceptions.
"""
