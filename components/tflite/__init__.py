"""TF Lite: the model that the Evaluator blessed, quantized, described and judged against the SavedModel."""
