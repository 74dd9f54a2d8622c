"""Names of files that one room writes and another reads and no other contract here describes; some are TFX's."""

COLUMNS_FILE = "columns.json"
"""The kinds of all features of an Examples artifact, by name."""

SCHEMA_FILE = "schema.pbtxt"
STATISTICS_FILE = "FeatureStats.pb"
ANOMALIES_FILE = "SchemaDiff.pb"
FAILURE_FILE = "failure.json"
STRING_LENGTHS = "string_lengths"
"""Not a file: the name of a custom statistic of texts in STATISTICS_FILE."""

SAMPLE_FILE = "sampled_predictions.tfrecord"
HISTORY_FILE = "history.csv"
SERVING_MODEL_FOLDER = "Format-Serving"
REPORT_FILE = "report.html"
