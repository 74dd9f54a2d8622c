"""What runs, in what order, and where."""

# Before any module of ours imports ML Metadata: it decides whether ML Metadata's library writes to the terminal.
import metadata as metadata
