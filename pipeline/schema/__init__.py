"""What the data of a run ask a schema to become, and how its text is changed to that.

A room of `pipeline`, for it reads runs (`metadata`) and recipes both. From the bottom up: `syntax` and `editing` know
the text of a schema, `data` the columns and rows of a run; `rules` compares them and proposes `changes`;
`reviewed_files` remembers which are not wanted, and `offer` is the whole for a recipe and a run.
None of it imports TensorFlow.
"""
