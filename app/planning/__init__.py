"""Forecasts of campaigns: the judgments, hours and money that a goal will cost, found by simulation.

`forecast.ForecastRunner` forecasts a campaign in another process. `crowd_model` chooses annotators like those of the
campaign or of a published data set, `participation` estimates how often each of them answers, and
`goal_simulation.forecast_goal` simulates the campaign with them (in memory, with `app.simulation.campaign`) until its
goal is reached. The result is a `campaign_forecast.CampaignForecast`: sentences, costs and a curve, which `pages`
shows.

Open `campaign_forecast.py` first (the contents of a forecast), then `forecast.py` and `goal_simulation.py`.
"""
