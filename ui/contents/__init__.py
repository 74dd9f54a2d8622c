"""The data's statistics, schema and faults as typed records for pages."""
