"""The tests of retinue. The folders mirror `src/retinue`; `structure` holds the house rules."""
