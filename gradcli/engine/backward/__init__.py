"""The backward pass: `backward` and `grad`, the walk through the graph, hooks on the way, and `.grad`."""
