"""Where artifacts keep what is read here: the files' names are the components', and a test holds them equal."""

SCHEMA_FILE = "schema.pbtxt"
STATISTICS_FILE = "FeatureStats.pb"
ANOMALIES_FILE = "SchemaDiff.pb"
VERDICT_FILE = "verdict.json"
SUMMARY_FILE = "summary.json"
CARD_FILE = "assets.extra/card.json"
FAILURE_FILE = "failure.json"
