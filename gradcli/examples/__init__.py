"""Functions to try gradcli on: the tutorials' own, written anew, right ones and (in `broken`) wrong ones."""
