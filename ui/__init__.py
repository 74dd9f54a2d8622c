"""What people look at: a run's report and the dashboard, made of the same generic parts."""
