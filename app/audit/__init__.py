"""Reading of the audit log: search, pages and exports. `database.audit_log` writes it.

`log_query.AuditLogFilter` selects lines, `load_log_page` reads a page of them, and `log_export_table` streams all.
`pages` serves researchers, `api` programs; both cover one campaign or the whole server.

Open `log_query.py` first.
"""
