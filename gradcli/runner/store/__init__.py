"""Files that runs write: saved failures, the ids of cases that failed last, and the cache of passed cases."""
