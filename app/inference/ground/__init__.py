"""What every method stands on: arrays and their checks, resampling, correlation, refusals."""
