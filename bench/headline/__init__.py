"""Results that systems of this kind are judged by, made anew on scripted models.

`python -m bench.headline`, or `make headline`, prints ours beside those of a reference system.
"""
