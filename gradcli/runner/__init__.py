"""From targets to results: gather and plan cases, run each of them, alone or in worker processes."""
