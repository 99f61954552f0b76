"""gradcli on public packages."""
