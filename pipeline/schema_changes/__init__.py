"""What the data of a run ask a schema to become, and how its text is changed to that.

A room of `pipeline`, for it reads runs (`metadata`) and recipes both. From the bottom up: `syntax` and `editing` know
the text of a schema, `columns` and `rows` the data; `rules` compares them and `proposals` puts together what it finds;
`rejections` remembers what is not wanted, `evidence` finds the files of a run, and `offer` is the whole for a recipe.
None of it imports TensorFlow.
"""
