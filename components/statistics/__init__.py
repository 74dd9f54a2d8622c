"""StatisticsGen: TFDV's statistics of every split."""
