"""The InfraValidator: a model is pushed only if the model server loads it and answers as it did in the evaluation."""
