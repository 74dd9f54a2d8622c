"""What the report and the dashboard share: templates, style, charts."""
