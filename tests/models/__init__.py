"""The tests of `retinue.models`, apart from the forms of the wire."""
