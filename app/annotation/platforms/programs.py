"""Annotators for whom a program speaks: those whom a researcher's program names, and those that are made up."""

from app.annotation.platforms.platform import Platform

API_PLATFORM = Platform("api", "API", has_page=False)
SIMULATION_PLATFORM = Platform("simulation", "Simulation", has_page=False, is_simulated=True)
