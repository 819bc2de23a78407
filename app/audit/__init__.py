"""What the audit log says: found, shown, and exported. It is written by `database.audit_log`."""
