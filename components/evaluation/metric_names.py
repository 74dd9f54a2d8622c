"""The metrics that a recipe can name, by task. Importing them loads neither TensorFlow nor TFMA."""

from __future__ import annotations

from typing import Literal, NamedTuple

from contracts.near_names import near_names

TWO, CLASSES, ONE_HOT, NUMBERS = "two classes", "classes", "one-hot classes", "numbers"
"""What can be judged: a score of two classes, scores of several classes by ids or one-hot labels, a number."""


class MetricName(NamedTuple):
    """What a metric is.

    Attributes:
        tasks: What it can judge.
        better: The direction that is better; None where a value in between is.
        meaning: What it says.
    """

    tasks: tuple[str, ...]
    better: Literal["higher", "lower"] | None
    meaning: str


METRICS: dict[str, MetricName] = {
    "AUC": MetricName((TWO,), "higher", "the chance that a row of class 1 scores above one of class 0"),
    "AUCPrecisionRecall": MetricName((TWO,), "higher", "the area under the curve of precision over recall"),
    "BinaryAccuracy": MetricName((TWO,), "higher", "the share of rows whose score is on the right side of 0.5"),
    "BalancedAccuracy": MetricName((TWO,), "higher", "the mean of recall and specificity"),
    "BinaryCrossentropy": MetricName((TWO,), "lower", "the mean loss that such models are trained with"),
    "BinaryCrossEntropy": MetricName((TWO,), "lower", "the same, computed by TFMA"),
    "BinaryIoU": MetricName((TWO,), "higher", "the mean overlap of predicted and true rows, of both classes"),
    "CoefficientOfDiscrimination": MetricName((TWO,), "higher", "the mean score of class 1 less that of class 0"),
    "RelativeCoefficientOfDiscrimination": MetricName((TWO,), "higher", "the same two as a ratio"),
    "DiagnosticOddsRatio": MetricName((TWO,), "higher", "the odds of a positive in class 1 over those in class 0"),
    "F1Score": MetricName((TWO,), "higher", "the harmonic mean of precision and recall"),
    "FowlkesMallowsIndex": MetricName((TWO,), "higher", "the geometric mean of precision and recall"),
    "Informedness": MetricName((TWO,), "higher", "recall plus specificity less 1"),
    "Markedness": MetricName((TWO,), "higher", "precision plus negative predictive value less 1"),
    "MatthewsCorrelationCoefficient": MetricName((TWO,), "higher", "the correlation of predicted and true classes"),
    "Precision": MetricName((TWO,), "higher", "the share of class 1 among the rows predicted as 1"),
    "PPV": MetricName((TWO,), "higher", "Precision"),
    "Recall": MetricName((TWO,), "higher", "the share of class 1 that is predicted as 1"),
    "TPR": MetricName((TWO,), "higher", "Recall"),
    "MaxRecall": MetricName((TWO,), "higher", "recall with all rows above a score of 0 predicted as 1"),
    "Specificity": MetricName((TWO,), "higher", "the share of class 0 that is predicted as 0"),
    "TNR": MetricName((TWO,), "higher", "Specificity"),
    "ThreatScore": MetricName((TWO,), "higher", "true positives over all rows but the true negatives"),
    "FallOut": MetricName((TWO,), "lower", "the share of class 0 that is predicted as 1"),
    "FPR": MetricName((TWO,), "lower", "FallOut"),
    "MissRate": MetricName((TWO,), "lower", "the share of class 1 that is predicted as 0"),
    "FNR": MetricName((TWO,), "lower", "MissRate"),
    "NegativePredictiveValue": MetricName((TWO,), "higher", "the share of class 0 among the rows predicted as 0"),
    "NPV": MetricName((TWO,), "higher", "NegativePredictiveValue"),
    "FalseDiscoveryRate": MetricName((TWO,), "lower", "the share of class 0 among the rows predicted as 1"),
    "FalseOmissionRate": MetricName((TWO,), "lower", "the share of class 1 among the rows predicted as 0"),
    "PositiveLikelihoodRatio": MetricName((TWO,), "higher", "recall over fall-out"),
    "NegativeLikelihoodRatio": MetricName((TWO,), "lower", "miss rate over specificity"),
    "PrevalenceThreshold": MetricName((TWO,), "lower", "the prevalence below which precision falls off"),
    "TruePositives": MetricName((TWO,), "higher", "the rows of class 1 that are predicted as 1"),
    "TP": MetricName((TWO,), "higher", "TruePositives"),
    "TrueNegatives": MetricName((TWO,), "higher", "the rows of class 0 that are predicted as 0"),
    "TN": MetricName((TWO,), "higher", "TrueNegatives"),
    "FalsePositives": MetricName((TWO,), "lower", "the rows of class 0 that are predicted as 1"),
    "FP": MetricName((TWO,), "lower", "FalsePositives"),
    "FalseNegatives": MetricName((TWO,), "lower", "the rows of class 1 that are predicted as 0"),
    "FN": MetricName((TWO,), "lower", "FalseNegatives"),
    "Hinge": MetricName((TWO,), "lower", "the mean distance from the margin"),
    "SquaredHinge": MetricName((TWO,), "lower", "the mean squared distance from the margin"),
    "KLDivergence": MetricName((TWO,), "lower", "the divergence of the scores from the labels"),
    "Prevalence": MetricName((TWO,), None, "the share of class 1"),
    "PredictedPositiveRate": MetricName((TWO,), None, "the share of rows predicted as 1"),
    "SparseCategoricalAccuracy": MetricName((CLASSES,), "higher", "the share of rows whose highest score is right"),
    "SparseTopKCategoricalAccuracy": MetricName((CLASSES,), "higher", "the share with the right one among five"),
    "SparseCategoricalCrossentropy": MetricName((CLASSES,), "lower", "the mean loss that such models are trained with"),
    "CategoricalAccuracy": MetricName((ONE_HOT,), "higher", "the share of rows whose highest score is right"),
    "TopKCategoricalAccuracy": MetricName((ONE_HOT,), "higher", "the share with the right one among five"),
    "CategoricalCrossentropy": MetricName((ONE_HOT,), "lower", "the mean loss that such models are trained with"),
    "RootMeanSquaredError": MetricName((NUMBERS, TWO), "lower", "the root of the mean squared error"),
    "MeanSquaredError": MetricName((NUMBERS, TWO), "lower", "the mean squared error"),
    "MeanAbsoluteError": MetricName((NUMBERS, TWO), "lower", "the mean absolute error"),
    "MeanAbsolutePercentageError": MetricName((NUMBERS,), "lower", "the mean error in percent of the label"),
    "MeanSquaredLogarithmicError": MetricName((NUMBERS,), "lower", "the mean squared error of logarithms"),
    "LogCoshError": MetricName((NUMBERS,), "lower", "like a squared error near 0, like an absolute one far off"),
    "Poisson": MetricName((NUMBERS,), "lower", "the mean Poisson loss, for counts"),
    "CosineSimilarity": MetricName((NUMBERS,), "higher", "the cosine between labels and predictions"),
    "SquaredPearsonCorrelation": MetricName((NUMBERS,), "higher", "the share of the variance that is explained"),
    "Calibration": MetricName((NUMBERS, TWO), None, "the mean prediction over the mean label; 1 is right"),
    "MeanLabel": MetricName((NUMBERS, TWO), None, "the mean label"),
    "MeanPrediction": MetricName((NUMBERS, TWO), None, "the mean prediction"),
}

ALSO_CALLED = {
    "rmse": "RootMeanSquaredError",
    "mse": "MeanSquaredError",
    "mae": "MeanAbsoluteError",
    "mape": "MeanAbsolutePercentageError",
    "msle": "MeanSquaredLogarithmicError",
    "r2": "SquaredPearsonCorrelation",
    "r2score": "SquaredPearsonCorrelation",
    "accuracy": "BinaryAccuracy or SparseCategoricalAccuracy",
    "f1": "F1Score",
    "mcc": "MatthewsCorrelationCoefficient",
    "rocauc": "AUC",
    "prauc": "AUCPrecisionRecall",
    "averageprecision": "AUCPrecisionRecall",
    "logloss": "BinaryCrossentropy or SparseCategoricalCrossentropy",
    "crossentropy": "BinaryCrossentropy or SparseCategoricalCrossentropy",
    "sensitivity": "Recall",
}
"""Other names that people use, in small letters, without spaces, `-` and `_`."""


def meant(name: str) -> str:
    """A sentence about what an unknown name was probably meant to be."""
    bare = "".join(character for character in name.lower() if character.isalnum())
    near = ALSO_CALLED.get(bare) or next(iter(near_names(bare, METRICS)), None)
    return f"Did you mean {near}?" if near else "docs/recipes.md lists them by task."
