"""Reading what happened, from ML Metadata."""

import os

# ML Metadata writes a line for every connection to a server, and each error that it raises once more, past Python's
# logging to the terminal; only before its library is loaded can that be turned off. `metadata.probe` turns it on.
os.environ.setdefault("GLOG_minloglevel", "3")
