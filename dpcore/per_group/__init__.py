"""A release per group (GROUP BY): how much may one user add, and to how many groups?

`pairs` holds the data, `parameters` the question, `moments` the exact error under a pair of bounds,
`pair_of_bounds` the best pair by `passes` over sorted pairs, `means` those of means, `whole_vector` what bounds a
user's whole vector instead, without sampling. `selection_rules`,
`users_kept` and `selection` are for groups that are selected privately, `summary` for data of which only the
distribution of pairs is known. `private_pair` chooses a pair of bounds with an epsilon of its own.
"""
