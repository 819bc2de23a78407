"""Accounts of researchers, and their access to campaigns.

People log in with a password (`passwords`, `login`, `throttle`), a one-time link, a provider (`openid`, `identities`)
or an invitation (`invitations`); programs use API tokens (`tokens`). `roles` lists what each role may do and what each
route needs. `access.Access` combines roles and scopes for one request. `guards` checks every request, so that code
behind it finds campaigns by slug alone. `members` and `shared_links` share single campaigns.

Open `guards.py` first, then `roles.py`.
"""
