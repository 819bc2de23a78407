"""Defaults of forecasts and the largest crowd that can be entered; commands import them for their help."""

DEFAULT_FORECAST_RUNS = 20
DEFAULT_CONCURRENT_ANNOTATORS = 5
DEFAULT_POPULATION = "mlqe-et-en"
DEFAULT_ANNOTATORS_IN_TOTAL = 200  # while no annotator has answered twice
MAX_ANNOTATORS_INPUT = 100_000
