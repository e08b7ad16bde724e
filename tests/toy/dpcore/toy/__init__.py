"""How many users have more rows than so many, released with Laplace noise: a question of the tests."""
