"""Shared basis of all methods: arrays and their checks, resampling, correlation, refusals."""
