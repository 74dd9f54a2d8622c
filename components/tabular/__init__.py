"""Features and models for tables, declared in a dozen lines; `millrace new` writes such recipes."""
