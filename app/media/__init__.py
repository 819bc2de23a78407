"""Files that items name: taken out of a zip, kept in the database, served to pages."""
