"""What the text of a target says about its inputs: names, source, documentation."""
