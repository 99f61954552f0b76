"""The claimed derivative at one point of a map, and its comparison with measured slopes and residuals."""
