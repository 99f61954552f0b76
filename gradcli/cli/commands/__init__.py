"""The commands, one a file: `gradcli check`, `trace`, `fix`, `init`, `list`, `explain`, `merge`, `replay`, `schema`."""
