"""API of campaigns: settings, life cycle and items."""
