"""Cases on executors of `concurrent.futures`, on this machine or on a cluster."""
