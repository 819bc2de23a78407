"""Pages of accounts: login, account, researchers, invitations, members and logins by a provider."""
