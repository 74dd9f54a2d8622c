"""What people look at: a run's report and the dashboard, built from the same generic parts."""
