"""Of the original's tests, what scripts take from there."""
