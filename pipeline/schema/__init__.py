"""Proposes schema changes that a run's data call for, and edits the schema's text.

A room of `pipeline`, because it reads both runs (`metadata`) and recipes. From the bottom up: `syntax` and `editing`
handle the text of a schema, `data` the columns and rows of a run; `rules` compares them and proposes `changes`;
`reviewed_files` records those that were rejected, and `offer` puts it all together for a recipe and a run.
None of it imports TensorFlow.
"""
