"""Neighbours of tables, for the tests of private selections."""

import numpy as np

from dpcore.common.privacy import Neighbours


def list_neighbours(tables: np.ndarray, relation: Neighbours) -> tuple[np.ndarray, np.ndarray]:
    """Return every neighbour of tables of numbers of users by kind, and the index of the table that each is of.

    A neighbour has one user more, of each kind in turn; or that one in place of one of its own.
    """
    kinds = tables.shape[1]
    table_indices = np.repeat(np.arange(len(tables)), kinds)
    neighbours = tables[table_indices] + np.tile(np.eye(kinds, dtype=np.int64), (len(tables), 1))
    if relation is Neighbours.ADD_OR_REMOVE_USER:
        return table_indices, neighbours
    neighbours[np.arange(len(table_indices)), np.argmax(tables[table_indices] > 0, axis=1)] -= 1
    has_user = tables[table_indices].any(axis=1)
    return table_indices[has_user], neighbours[has_user]
