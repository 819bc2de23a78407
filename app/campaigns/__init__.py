"""Setting a campaign up and leading it through its life: draft, running, paused, finished."""
