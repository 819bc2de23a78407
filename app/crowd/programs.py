"""Annotators for whom a program speaks: those whom a researcher's program names, and those that are made up."""

from app.crowd.platform import Platform

API = Platform("api", "API", has_page=False)
SIMULATION = Platform("simulation", "Simulation", has_page=False, made_up=True)
