"""How candidate models compared on training rows, as JSON beside a ModelRun's history; made by components/tabular."""

from __future__ import annotations

from typing import Literal

from contracts.content import HasFiles, Record, read_record

COMPETITION_FILE = "competition.json"


class Candidate(Record):
    """A model that competed.

    Attributes:
        name: Its kind: `trees`, `network`, `linear`, or `average` of several.
        value: Its metric on rows that it did not learn from.
        ahead: By how much the winner's metric is better; 0 for the winner.
        ahead_low: The lower bound of the 95 % interval of `ahead`.
        ahead_high: The upper bound.
    """

    name: str
    value: float
    ahead: float
    ahead_low: float
    ahead_high: float

    @property
    def is_separated(self) -> bool:
        """Whether the difference to the winner is more than chance."""
        return self.ahead_low > 0 or self.ahead_high < 0


class Competition(Record):
    """What was compared, and what was chosen.

    Attributes:
        format: The version of this description.
        metric: Its name, as in `evaluator.metrics`.
        higher_is_better: Which way is better.
        rows: The training rows that each candidate was judged on.
        folds: Into how many parts they were divided; 1 for a single part that nothing learned from.
        candidates: The best value first.
        winner: The one that was trained on all training rows.
        why: Why that one, in a sentence.
    """

    format: Literal[1] = 1
    metric: str
    higher_is_better: bool
    rows: int
    folds: int
    candidates: list[Candidate]
    winner: str
    why: str

    def described(self) -> list[str]:
        """Lines for a log."""
        how = f"{self.folds} folds of them" if self.folds > 1 else "a part of them that none learned from"
        lines = [f"Candidates on {self.rows:,} training rows ({how}), by {self.metric}:"]
        for candidate in self.candidates:
            interval = f"{candidate.ahead_low:.4g} to {candidate.ahead_high:.4g}"
            ahead = f"; the winner is ahead by {candidate.ahead:.4g} ({interval})"
            is_winner = candidate.name == self.winner
            lines.append(f"  {candidate.name:<8} {candidate.value:.4f}{'' if is_winner else ahead}")
        return [*lines, f"Trained: {self.winner}, {self.why}"]


def read_competition(model_run: HasFiles) -> Competition | None:
    """The competition of a training; None if there was none.

    Args:
        model_run: The ModelRun.

    Raises:
        ContentError: It is broken.
    """
    path = model_run.file(COMPETITION_FILE)
    return read_record(path, Competition) if path.exists() else None
