"""TFMA's evaluation without Beam, in this process: batches of columns instead of rows, on all cores.

TFMA's metrics are what its combiners add up row by row, and functions of that. Here whole batches are added up, by
slice; the functions are TFMA's own, as are the files that are written.
"""
