"""Forecasts of campaigns: how many judgments, hours and how much money a goal will cost, found by simulation.

`forecast.ForecastRunner` forecasts a campaign in another process. `crowd_model` finds annotators like those of the
campaign or of a published one, `participation` how often each of them answers, and `goal_simulation.forecast_goal`
repeats the campaign with them (in memory, by `app.simulation.campaign`) until its goal is reached. The result is a
`campaign_forecast.CampaignForecast`: sentences, costs and a curve, which `pages` shows.

Open `campaign_forecast.py` first (what is found out), then `forecast.py` and `goal_simulation.py`.
"""
