"""Programs that the tests check: right Functions, planted mistakes, hostile code, modules of a user."""
