"""Background scans for goals: they stop a campaign, or stop asking about settled items, when a goal is reached.

`monitor.enforce_goal_and_return_state_or_none` measures a campaign's progress after new answers and does what the
researcher chose: notify, pause, finish, or release items. `release` stores which items are settled. `goal_report`
has the progress for `api` and for `easel campaign goal`. The measures themselves are pure and are in `app/goals`.

Open `monitor.py` first.
"""
