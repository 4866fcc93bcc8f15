"""For tests of what you build on retinue: suites that any store or engine must pass, and fakes."""
