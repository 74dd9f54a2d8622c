"""Reads what happened from ML Metadata."""

import os

# ML Metadata's C++ library logs every connection to a server, and every error that it also raises, straight to the
# terminal. That can be turned off only before the library is loaded. `metadata.probe` turns it on again.
os.environ.setdefault("GLOG_minloglevel", "3")
