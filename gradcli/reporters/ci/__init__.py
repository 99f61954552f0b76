"""Reports for CI systems and code review: GitHub, JUnit, SARIF, Markdown."""
