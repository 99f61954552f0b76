"""One point of a map: its claimed derivative, and how measured directions and residuals compare with it."""
