"""Accounts of researchers, their access to campaigns, and the log of what they changed.

People log in with a password (`passwords`, `login`, `throttle`), a one-time link, a provider (`openid`, `identities`)
or an invitation (`invitations`); programs use API tokens (`tokens`). `roles` lists what each role may do and what each
route needs. `access.Access` combines roles and scopes for one request. `guards` checks every request, so that code
behind it can look up campaigns by slug alone. `members` and `shared_links` give access to single campaigns. `log_query`
searches the audit log, which `database.audit_log` writes.

Open `guards.py` first, then `roles.py`.
"""
