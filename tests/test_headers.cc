// Owns the precompiled headers of the tests; has none itself.
