"""Who the researcher is: passwords, one-time logins, sessions, API tokens."""
