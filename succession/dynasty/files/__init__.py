"""The files of a dynasty, one each, and how they are spelled."""
