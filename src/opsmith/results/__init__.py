"""What came of finished runs: counts, metrics, intervals; each rule that counts or ranks stands here once."""
