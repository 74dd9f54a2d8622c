"""The InfraValidator: a model is pushed only if the model server loads it and answers what the Evaluator saw."""
