"""Platforms of annotators that programs speak for: a researcher's program through the API, and simulations."""

from app.annotation.platforms.platform import Platform

API_PLATFORM = Platform("api", "API", has_page=False, people_from="programs")
SIMULATION_PLATFORM = Platform("simulation", "Simulation", has_page=False, is_simulated=True)
